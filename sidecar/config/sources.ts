/**
 * Sources of a setting's text: flags override the environment, which overrides the `.env` file. Each source may hold a
 * secret itself, or the name of a file with it (`COUCHDB_PASSWORD_FILE`), but not both.
 */
import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { nearest } from '../core/nearest.ts'
import { infoOf, settingNames, type SettingName } from './settings.ts'

export type Variables = Readonly<Record<string, string | undefined>>

export interface Sources {
  /** Such as `process.env`. */
  readonly env: Variables
  /** Values from the command line, by setting name (`SIDECAR_PORT`). */
  readonly flags?: Variables
  /** Path of the `.env` file. A missing file is no fault. */
  readonly envFile?: string
}

export interface Found {
  readonly text: string
  /** `flag`, `environment`, the `.env` file, or the file that holds the secret. */
  readonly from: string
  /** True if the text was read from the file of a secret. */
  readonly fromFile: boolean
}

/** Returns the texts of the settings, each from the source with the highest priority. An empty text does not count. */
export function collect({ env, flags = {}, envFile }: Sources, faults: string[]): Map<SettingName, Found> {
  const layers = [
    { from: 'the command line', variables: flags },
    { from: 'the environment', variables: env },
    { from: envFile ?? '.env', variables: envFile === undefined ? {} : readEnvFile(envFile, faults) },
  ]
  for (const { from, variables } of layers) faults.push(...misspelt(variables, from))

  const found = settingNames.flatMap((name): [SettingName, Found][] => {
    const layer = layers.find(({ variables }) => variables[name]?.trim() || fileOf(name, variables))
    const one = layer && readFrom(layer.variables, name, layer.from, faults)
    return one ? [[name, one]] : []
  })
  return new Map(found)
}

const fileOf = (name: SettingName, variables: Variables): string | undefined =>
  infoOf(name).secret === undefined ? undefined : variables[`${name}_FILE`]?.trim()

function readFrom(variables: Variables, name: SettingName, from: string, faults: string[]): Found | undefined {
  const text = variables[name]?.trim()
  const file = fileOf(name, variables)
  if (text && file) faults.push(`${name}: expected a value or ${name}_FILE, got both from ${from}`)
  if (text) return { text, from, fromFile: false }
  const held = file && readSecret(name, file, faults)
  return held ? { text: held, from: file, fromFile: true } : undefined
}

function readEnvFile(path: string, faults: string[]): Variables {
  try {
    return parseEnv(readFileSync(path, 'utf8'))
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException
    if (code !== 'ENOENT') faults.push(`${path}: expected a readable file of settings, got ${code}`)
    return {}
  }
}

function readSecret(name: SettingName, path: string, faults: string[]): string | undefined {
  try {
    const text = readFileSync(path, 'utf8').trim()
    if (!text) faults.push(`${name}_FILE: expected a file that holds the value, got an empty file: ${path}`)
    return text
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException
    faults.push(`${name}_FILE: expected a file that holds the value, got ${code} for ${path}`)
    return undefined
  }
}

const PREFIX = 'SIDECAR_'

/**
 * Finds unknown names that were meant for the sidecar. All `SIDECAR_` names belong to it. `COUCHDB_` and `SMTP_` belong
 * to others too (CouchDB's own image, Kubernetes' service links). With these prefixes, only near misses count.
 */
function misspelt(variables: Variables, from: string): string[] {
  const known = settingNames.flatMap((name) => (infoOf(name).secret ? [name, `${name}_FILE`] : [name]))
  return Object.keys(variables).flatMap((name) => {
    const ours = name.toUpperCase().startsWith(PREFIX)
    if (known.includes(name) || !(ours || /^(COUCHDB|SMTP)_?/i.test(name))) return []
    const most = ours ? Math.min(6, Math.floor((name.length - PREFIX.length) / 2)) : 2
    const suggestion = nearest(name.toUpperCase(), known, most)
    if (!suggestion && !ours) return []
    const hint = suggestion ? `did you mean ${suggestion}?` : 'no such setting exists'
    return [`${name}: expected the name of a setting, got an unknown one from ${from}; ${hint}`]
  })
}
