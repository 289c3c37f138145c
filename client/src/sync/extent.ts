/**
 * Detects that an older copy of the remote database was restored. PouchDB does not: its checkpoints are ahead of the
 * copy. So it does not read the copy's next changes, and does not send lost documents again.
 *
 * CouchDB keeps a uuid in the file of each shard, and a copy has the same uuid. A sequence is a number, a dash, and the
 * position of each file: `{Node, Range, {Seq, Uuid, Node}}` in Erlang's term format (base64url, mostly compressed).
 */
import { statusOf, type Db } from '../pouch.ts'

/** Position of each file of a database, by uuid. For a server other than CouchDB, one position for all, as `''`. */
export type Extent = Readonly<Record<string, number>>

export interface Extents {
  /** Records the remote database's position. If it is behind the recorded one, returns true and records nothing. */
  look(seq: unknown): Promise<boolean>
  /** Forgets the recorded position: everything is being compared. */
  forget(): void
}

const ID = '_local/couchdb-sidecar-remote'

/** Stored in the local database: a copy may be restored while the app is closed. */
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
      known = { ...before, ...now } // on a cluster, each answer comes from other copies
      if (JSON.stringify(known) !== JSON.stringify(before)) await write(known)
      return false
    },
    forget: () => void (known = {}),
  }
}

export const isBehind = (now: Extent, before: Extent): boolean =>
  Object.entries(before).some(([file, seq]) => (now[file] ?? seq) < seq)

/** Decodes a sequence; empty if its format is unknown. */
export async function extentOf(seq: unknown): Promise<Extent> {
  if (typeof seq === 'number') return { '': seq }
  const [, packed] = /^\d+-([\w-]+)$/.exec(String(seq)) ?? []
  return packed === undefined ? {} : filesIn(await unpack(packed).catch(() => new Uint8Array()))
}

const [COMPRESSED, TUPLE, BYTE, INTEGER, BIG, BINARY] = [80, 104, 97, 98, 110, 109]
/** Bytes of version, tag and length before the packed data. */
const HEAD = 6

/** Throws if the platform cannot unpack, or the text has another format. */
async function unpack(text: string): Promise<Uint8Array> {
  const bytes = Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (char) => char.charCodeAt(0))
  if (bytes[1] !== COMPRESSED) return bytes
  const inflated = new Blob([bytes.subarray(HEAD)]).stream().pipeThrough(new DecompressionStream('deflate'))
  return new Uint8Array(await new Response(inflated).arrayBuffer())
}

/** Finds each tuple of three that begins with a number and a short text; no other term has this form. */
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
