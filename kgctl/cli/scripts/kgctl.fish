function __kgctl_complete
    set -l token (commandline --current-token --cut-at-cursor | string collect)
    set -l option (string match --regex -- '^--[^=]+=' $token; or echo '')
    set -l line (commandline --current-process --cut-at-cursor | string collect)
    set -l asked _KGCTL_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION=get-args
    set -l found (env $asked _TYPER_COMPLETE_ARGS=$line kgctl 2>/dev/null | string match --regex -- '.+')
    if test (count $found) -eq 0
        set found (__fish_complete_path (string sub --start (math (string length -- $option) + 1) -- $token))
    end
    printf '%s\n' $option$found
end

complete --command kgctl --no-files --arguments '(__kgctl_complete)'
