/** The parsed content of Dockerfile, .dockerignore and docker-compose.yml. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { root } from '../acceptance/build.ts'

export const read = (path: string): string => readFileSync(join(root, path), 'utf8')

export interface Instruction {
  readonly name: string
  readonly text: string
}

/** The stages of the Dockerfile, each with its FROM. */
export function stages(): Instruction[][] {
  const lines = read('Dockerfile')
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll('\\\n', ' ')
    .split('\n')
    .filter((line) => line.trim() !== '')
  const instructions = lines.map((line) => {
    const [, name, text] = /^(\w+)\s+(.*)$/.exec(line)!
    return { name: name!, text: text!.replaceAll(/\s+/g, ' ') }
  })
  return instructions.reduce<Instruction[][]>((found, instruction) => {
    if (instruction.name === 'FROM') return [...found, [instruction]]
    found.at(-1)?.push(instruction) // instructions before the first stage apply to FROM only
    return found
  }, [])
}

export const textsOf = (stage: readonly Instruction[], name: string): string[] =>
  stage.filter((instruction) => instruction.name === name).map(({ text }) => text)

/** The pairs `A=b C="d e"` of ENV and LABEL. */
export const pairsOf = (stage: readonly Instruction[], name: string): Record<string, string> =>
  Object.fromEntries(
    [
      ...textsOf(stage, name)
        .join(' ')
        .matchAll(/([\w.]+)=(?:"([^"]*)"|(\S+))/g),
    ].map((pair) => [pair[1]!, pair[2] ?? pair[3]!]),
  )

export interface Service {
  readonly image: string
  readonly build?: string
  readonly hostname?: string
  readonly environment?: Readonly<Record<string, string>>
  readonly secrets?: readonly string[]
  readonly ports?: readonly string[]
  readonly volumes?: readonly string[]
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>
  readonly stop_grace_period?: string
  readonly [other: string]: unknown
}

export interface Compose {
  readonly services: Readonly<Record<string, Service>>
  readonly secrets: Readonly<Record<string, { readonly file: string }>>
  readonly volumes: Readonly<Record<string, unknown>>
}

/** The compose file without any variable set. */
export const compose = (): Compose =>
  parse(read('docker-compose.yml').replaceAll(/\$\{\w+:-([^}]*)\}/g, '$1'), { merge: true }) as Compose
