import { existsSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { findCouchBinary } from './couchdb-binary.ts'

/** The path of a program of the Erlang that CouchDB's binary includes, if both exist. */
export function findErlangTool(tool: 'epmd' | 'erl_call'): string | undefined {
  const binary = findCouchBinary()
  if (binary === undefined) return undefined
  const root = join(dirname(binary), '..')
  const erlang = readdirSync(root).find((name) => name.startsWith('erts-'))
  const path = join(root, erlang ?? '', 'bin', tool)
  return erlang !== undefined && existsSync(path) ? path : undefined
}
