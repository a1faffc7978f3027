#compdef kgctl

_kgctl() {
  local line
  local -a values shown long
  for line in "${(@f)$(env _KGCTL_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION=get-args \
      _TYPER_COMPLETE_ARGS="${(j: :)words[1,CURRENT-1]} $PREFIX" kgctl 2>/dev/null)}"; do
    [[ -n $line ]] || continue
    values+=("${line%%$'\t'*}")
    shown+=("${line/$'\t'/  -- }")
    [[ $line == *$'\t'* ]] && long=(-l)
  done
  [[ $PREFIX == --*=* ]] && compset -P '*='
  if (( $#values )); then
    compadd $long -d shown -a values
  else
    _files
  fi
}

if [[ $funcstack[1] == _kgctl ]]; then
  _kgctl "$@"
else
  compdef _kgctl kgctl
fi
