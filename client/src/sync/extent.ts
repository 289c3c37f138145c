/**
 * Notices that an older copy of the remote database was put back. PouchDB does not: its places are beyond what the copy has,
 * so that what is written there next is not read, and what was lost there is not sent again.
 *
 * CouchDB keeps a uuid in the file of each shard, which a copy has as well. A sequence is a number, a dash, and in Erlang's
 * term format (base64url, mostly compressed) how far each file was: `{Node, Range, {Seq, Uuid, Node}}`.
 */
import { statusOf, type Db } from '../pouch.ts'

/** How far a database is: each of its files, by the uuid. Of a server that is no CouchDB all of it, as `''`. */
export type Extent = Readonly<Record<string, number>>

export interface Extents {
  /** Notes how far the remote database is now, unless it is behind what was noted before: then it returns true. */
  look(seq: unknown): Promise<boolean>
  /** What was noted before counts no more: everything is being compared. */
  forget(): void
}

const ID = '_local/couchdb-sidecar-remote'

/** Kept in the local database, for when the app was closed while a copy was put back. */
export function createExtents(local: Db): Extents {
  let known: Extent | undefined

  async function write(files: Extent): Promise<void> {
    const stored = await local.get(ID).catch(missing)
    const doc = { _id: ID, ...(stored && { _rev: stored._rev }), files }
    await local.put(doc)
  }

  return {
    async look(seq) {
      const now = await extentOf(seq)
      const before = (known ??= ((await local.get(ID).catch(missing))?.files as Extent | undefined) ?? {})
      if (isBehind(now, before)) return true
      known = { ...before, ...now } // on a cluster each answer is of other copies
      if (JSON.stringify(known) !== JSON.stringify(before)) await write(known)
      return false
    },
    forget: () => void (known = {}),
  }
}

export const isBehind = (now: Extent, before: Extent): boolean =>
  Object.entries(before).some(([file, seq]) => (now[file] ?? seq) < seq)

/** Empty where that is not known. */
export async function extentOf(seq: unknown): Promise<Extent> {
  if (typeof seq === 'number') return { '': seq }
  const [, packed] = /^\d+-([\w-]+)$/.exec(String(seq)) ?? []
  return packed === undefined ? {} : filesIn(await unpack(packed).catch(() => new Uint8Array()))
}

const [COMPRESSED, TUPLE, BYTE, INTEGER, BIG, BINARY] = [80, 104, 97, 98, 110, 109]
/** Bytes of version, tag and length before the packed ones. */
const HEAD = 6

/** Throws where the platform cannot unpack, or the text is packed otherwise. */
async function unpack(text: string): Promise<Uint8Array> {
  const bytes = Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (char) => char.charCodeAt(0))
  if (bytes[1] !== COMPRESSED) return bytes
  const inflated = new Blob([bytes.subarray(HEAD)]).stream().pipeThrough(new DecompressionStream('deflate'))
  return new Uint8Array(await new Response(inflated).arrayBuffer())
}

/** Each tuple of three that begins with a number and a short text; nothing else in it looks so. */
function filesIn(term: Uint8Array): Extent {
  const files: Record<string, number> = {}
  for (let at = 0; at < term.length; at++) {
    if (term[at] !== TUPLE || term[at + 1] !== 3) continue
    const number = numberAt(term, at + 2)
    if (!number || term[number.end] !== BINARY) continue
    const length = bigEndian(term.subarray(number.end + 1, number.end + 5))
    if (length > 32) continue
    files[String.fromCharCode(...term.subarray(number.end + 5, number.end + 5 + length))] = number.value
  }
  return files
}

function numberAt(term: Uint8Array, at: number): { readonly value: number; readonly end: number } | undefined {
  switch (term[at]) {
    case BYTE:
      return { value: term[at + 1]!, end: at + 2 }
    case INTEGER:
      return { value: bigEndian(term.subarray(at + 1, at + 5)), end: at + 5 }
    case BIG: {
      const end = at + 3 + term[at + 1]!
      return { value: bigEndian(term.slice(at + 3, end).reverse()), end }
    }
    case undefined:
    default:
      return undefined
  }
}

const bigEndian = (bytes: Uint8Array): number => bytes.reduce((sum, byte) => sum * 256 + byte, 0)

function missing(thrown: unknown): undefined {
  if (statusOf(thrown) !== 404) throw thrown
}
