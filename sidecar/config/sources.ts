/**
 * Where the text of a setting comes from: flags before environment before the `.env` file. In each of the three a
 * secret may stand itself or as the name of a file that holds it (`COUCHDB_PASSWORD_FILE`), but not both.
 */
import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { nearest } from '../core/nearest.ts'
import { infoOf, settingNames, type SettingName } from './settings.ts'

export type Variables = Readonly<Record<string, string | undefined>>

export interface Sources {
  /** As `process.env`. */
  readonly env: Variables
  /** From the command line, by the names of the settings (`SIDECAR_PORT`). */
  readonly flags?: Variables
  /** Path of the `.env` file. One that is not there is no fault. */
  readonly envFile?: string
}

export interface Found {
  readonly text: string
  /** `flag`, `environment`, the `.env` file, or the file that holds the secret. */
  readonly from: string
  /** True if the text is what a secret's file holds. */
  readonly fromFile: boolean
}

/** The text of every setting that is set (an empty one is not), each from the source that goes first. */
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

/**
 * Names that were meant for the sidecar and are none. `SIDECAR_` is all ours; `COUCHDB_` and `SMTP_` belong to others
 * too (CouchDB's own image, Kubernetes' service links), so there only what is nearly a name of ours.
 */
function misspelt(variables: Variables, from: string): string[] {
  const known = settingNames.flatMap((name) => (infoOf(name).secret ? [name, `${name}_FILE`] : [name]))
  return Object.keys(variables).flatMap((name) => {
    const ours = /^SIDECAR_/i.test(name)
    if (known.includes(name) || !(ours || /^(COUCHDB|SMTP)_?/i.test(name))) return []
    const meant = nearest(name.toUpperCase(), known, ours ? 6 : 2)
    if (!meant && !ours) return []
    const hint = meant ? `did you mean ${meant}?` : 'there is no such setting'
    return [`${name}: expected the name of a setting, got an unknown one from ${from}; ${hint}`]
  })
}
