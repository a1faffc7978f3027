_kgctl_completion() {
    local IFS=$'\n' rest="$COMP_LINE" words=() count=0 word value at
    for ((at = 0; at <= COMP_CWORD; at++)); do  # bash splits words at : and =, too
        word="${COMP_WORDS[at]}"
        if ((count)) && [[ "$rest" != [[:space:]]* ]]; then
            words[count - 1]="${words[count - 1]}$word"
        else
            words[count]="$word"
            count=$((count + 1))
        fi
        rest="${rest#"${rest%%[![:space:]]*}"}"
        rest="${rest#"$word"}"
    done
    COMPREPLY=($(env COMP_WORDS="${words[*]}" COMP_CWORD=$((count - 1)) _KGCTL_COMPLETE=complete_bash "$1"))
    value="${words[count - 1]}"
    if [[ "$value" == --*=* ]]; then
        value="${value#*=}"
    fi
    if [[ "$value" == *:* && "$COMP_WORDBREAKS" == *:* ]]; then  # it replaces what is behind the last colon only
        value="${value%"${value##*:}"}"
        COMPREPLY=("${COMPREPLY[@]#"$value"}")
    fi
    return 0
}

complete -o default -F _kgctl_completion kgctl
