import { Option, type Command } from 'commander'
import { describeSettings, loadConfig, type Config } from '../config.ts'
import type { Terminal } from './terminal.ts'

/** Every setting is also a flag; the table of settings is the only list of them. */
export function addSettings(command: Command): Command {
  for (const { name, flag, argument, default: byDefault, meaning } of describeSettings()) {
    command.addOption(new Option(`${flag} <${argument}>`, `${meaning} (${name}; default ${byDefault})`))
  }
  return command
}

/** The settings as flags, environment and the `.env` file give them. Throws `ConfigError`. */
export function readConfig(command: Command, { env, envFile }: Pick<Terminal, 'env' | 'envFile'>): Config {
  const options = command.opts<Record<string, string | undefined>>()
  const flags: Record<string, string | undefined> = {}
  for (const { name, flag } of describeSettings()) flags[name] = options[camelCase(flag)]
  return loadConfig({ env, flags, envFile })
}

const camelCase = (flag: string) => flag.slice(2).replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())
