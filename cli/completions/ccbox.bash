# Completion of ccbox for bash. A test compares the options with those that `ccbox COMMAND --help` prints.

_ccbox() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
  local commands="run wrap explain check probe plugins doctor proxy net-connect plugin version help"
  local config="--plugins --policy --egress-config --verbose --help"
  local spec="--bind --ro --mount --workdir --protect --state-dir --exec-grant --mode --backend --without
    --spec --spec-json --session --env --no-network --allow-domain --ticketing --memory --cpus --processes --file-size --timeout"
  local command=${COMP_WORDS[1]} options first=2 index
  COMPREPLY=()
  compopt +o default 2>/dev/null

  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W "$commands --version --help" -- "$current")
    return
  fi
  case $command in
    help) mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$current"); return ;;
    run) options="$spec --json --violations --quiet --pty $config" ;;
    wrap) options="$spec $config --violations --quiet" ;;
    explain) options="$spec --all --json $config" ;;
    check) options="$spec --read --write --create --json $config" ;;
    probe | plugins | doctor) options="--json $config" ;;
    proxy) options="--allow-domain --ticketing --github --no-network --listen-http --listen-socks $config" ;;
    net-connect) options="--proxy --help" ;;
    plugin)
      first=3
      if ((COMP_CWORD == 2)); then
        mapfile -t COMPREPLY < <(compgen -W "new test" -- "$current")
        return
      fi
      case ${COMP_WORDS[2]} in
        new) options="--directory --help" ;;
        test) options="--option --json --help" ;;
      esac
      ;;
    *) return ;;
  esac

  # Behind `--` or the first word of the command, the command's own words follow: files.
  case $command in
    run | wrap | explain)
      for ((index = first; index < COMP_CWORD; ++index)); do
        case ${COMP_WORDS[index]} in
          --) compopt -o default; return ;;
          --mount) ((index += 3)) ;;
          --no-network | --all | --json | --quiet | -q | --verbose | --help | -h | --*=*) ;;
          -*) ((++index)) ;;
          *) compopt -o default; return ;;
        esac
      done
      ;;
  esac

  case $previous in
    --bind | --ro | --protect | --state-dir | --exec-grant | --workdir | --directory)
      compopt -o filenames
      mapfile -t COMPREPLY < <(compgen -d -- "$current")
      return
      ;;
    --mode) mapfile -t COMPREPLY < <(compgen -W "chat review plan orchestrate" -- "$current"); return ;;
    --backend) mapfile -t COMPREPLY < <(compgen -W "native none bubblewrap" -- "$current"); return ;;
    --pty) mapfile -t COMPREPLY < <(compgen -W "auto always never" -- "$current"); return ;;
    --violations) mapfile -t COMPREPLY < <(compgen -W "none summary all json" -- "$current"); return ;;
    --env) mapfile -t COMPREPLY < <(compgen -A export -- "$current"); return ;;
    --without)
      mapfile -t COMPREPLY < <(compgen -W "fs_read_deny fs_write_deny fs_name_deny exec_deny net_proxy_only
        resource_limits kernel_boundary" -- "$current")
      return
      ;;
    --memory | --cpus | --processes | --file-size | --timeout | --session | --spec-json | --allow-domain | --ticketing | --option | --proxy | --listen-http | --listen-socks)
      return
      ;;
    --spec | --plugins | --policy | --egress-config | --mount) compopt -o default; return ;;
  esac
  if [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
  elif [[ $command == check && $COMP_CWORD -eq 2 ]]; then
    mapfile -t COMPREPLY < <(compgen -W "path domain" -- "$current")
  elif [[ $command == run || $command == wrap || $command == explain ]]; then
    mapfile -t COMPREPLY < <(compgen -c -- "$current")
  else
    compopt -o default
  fi
}

complete -F _ccbox ccbox
