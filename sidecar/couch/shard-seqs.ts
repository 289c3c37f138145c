/**
 * What stands in a sequence of CouchDB's: how far the file of each shard was. CouchDB keeps a file's uuid in the file, so an
 * older copy of it that was put back has the same, and is behind. `_changes` does not say so: asked for what comes after a
 * checkpoint that the file has not reached, it sends nothing until the file has grown beyond it.
 *
 * The text after the dash is Erlang's external term format: a list of `{Node, [Begin, End], {Seq, Uuid, Node}}`. Of the
 * uuid it has the first seven characters. What looks otherwise (PouchDB, shards that were just split) is not known here.
 */
import { inflateSync } from 'node:zlib'
import { z } from 'zod'
import type { Couch } from './client.ts'
import type { CallOptions } from './database.ts'
import { seqText, type DbInfo, type Seq } from './documents.ts'
import { CouchError } from './couch-errors.ts'
import { askNode } from './node.ts'

/** How far a database is. */
export interface Extent {
  /** The number before the dash of its `update_seq`: it grows with every change, at each node. */
  readonly changes: number
  /** As it was read. */
  readonly seq?: Seq | undefined
  /** How far each file is that was asked, by its uuid; none where that is not known. */
  readonly files?: Files | undefined
}

export type Files = Readonly<Record<string, number>>

interface ShardSeq {
  readonly node: string
  /** `00000000-7fffffff` */
  readonly range: string
  readonly uuid: string
  readonly seq: number
}

/** The number before the dash of a sequence. */
export const changesAt = (seq: Seq): number => parseInt(seqText(seq)) || 0

/** Unpacking costs a tenth of a millisecond, so it is done when the files are looked at, and once. */
export function extentOf(seq: Seq): Extent {
  let files: Files | undefined
  return {
    changes: changesAt(seq),
    seq,
    get files() {
      return (files ??= Object.fromEntries(decode(seq).map(({ uuid, seq }) => [uuid, seq])))
    },
  }
}

/**
 * Whether a database has lost changes that it had before: an older copy was put back, of all its files or of some. Of
 * files that are not in both, as on a cluster, nothing is known; where no files are known the number tells.
 */
export function isBehind(now: Extent, before: Extent): boolean {
  if (now.seq !== undefined && now.seq === before.seq) return false
  const { files = {} } = now
  const known = Object.entries(before.files ?? {})
  if (known.length === 0 && Object.keys(files).length === 0) return now.changes < before.changes
  return known.some(([uuid, seq]) => (files[uuid] ?? seq) < seq)
}

/**
 * Whether a database may be elsewhere than it was. The copies of a shard count each for itself, and one that was away counts
 * less: so a file is compared with itself alone, and one that is not known may have any changes.
 */
export function hasNews(now: Extent, done: Extent): boolean {
  if (now.seq !== undefined && now.seq === done.seq) return false
  const files = Object.entries(now.files ?? {})
  if (files.length === 0) return now.changes !== done.changes
  return files.some(([uuid, seq]) => seq !== done.files?.[uuid])
}

/** How far each file is by the one or the other. */
export function furthest(a: Files = {}, b: Files = {}): Files {
  const further = Object.entries(b).filter(([uuid, seq]) => seq > (a[uuid] ?? -1))
  return { ...a, ...Object.fromEntries(further) }
}

/** All files that are known by now: on a cluster each answer is of other copies. */
export function filesAfter(now: Extent, before: Extent | undefined): Files | undefined {
  if (!before?.files) return now.files
  return now.seq !== undefined && now.seq === before.seq ? before.files : { ...before.files, ...now.files }
}

const shardFile = z.object({ uuid: z.string(), update_seq: z.number() })

/**
 * Whether the database has lost changes that were before this checkpoint. Asks for the files that the checkpoint is of, where
 * `info` tells of other copies: only a server admin may. A copy that does not answer is taken for whole. Throws the
 * signal's reason.
 */
export async function isBehindCheckpoint(
  couch: Couch,
  info: DbInfo,
  checkpoint: Seq,
  options?: CallOptions,
): Promise<boolean> {
  const now = extentOf(info.update_seq)
  const before = extentOf(checkpoint)
  if (isBehind(now, before)) return true
  const others = decode(checkpoint).filter(({ uuid }) => now.files?.[uuid] === undefined)
  if (others.length > (info.cluster?.q ?? 0)) return false // no checkpoint of this database: it was made up
  const losses = await Promise.all(others.map((shard) => hasLost(couch, info, shard, options)))
  return losses.includes(true)
}

async function hasLost(
  couch: Couch,
  { db_name, instance_start_time }: DbInfo,
  { node, range, uuid, seq }: ShardSeq,
  options?: CallOptions,
): Promise<boolean> {
  const shard = encodeURIComponent(`shards/${range}/${db_name}.${instance_start_time}`)
  try {
    const file = await askNode(couch, node, shard, shardFile, options)
    return file.uuid.startsWith(uuid) && file.update_seq < seq
  } catch (thrown) {
    options?.signal?.throwIfAborted()
    if (thrown instanceof CouchError) return false
    throw thrown
  }
}

/** A sequence may be a client's: what it unpacks to is bounded. */
const MOST_BYTES = 256 * 1024
const [COMPRESSED, LIST, NIL, TUPLE] = [80, 108, 106, 104]
const [BYTE, INTEGER, BIG, BINARY, ATOM, UTF8_ATOM] = [97, 98, 110, 109, 100, 119]

/** Empty for what is none of CouchDB's. */
function decode(seq: Seq): ShardSeq[] {
  try {
    const text = seqText(seq)
    return readShards(unpack(Buffer.from(text.slice(text.indexOf('-') + 1), 'base64url')))
  } catch {
    return [] // not a list of shards, or no packed data: there is nothing else that it can throw
  }
}

const unpack = (bytes: Buffer): Buffer =>
  bytes[1] === COMPRESSED ? inflateSync(bytes.subarray(6), { maxOutputLength: MOST_BYTES }) : bytes.subarray(1)

/** Throws `RangeError` at the first byte that cannot be there. */
function readShards(bytes: Buffer): ShardSeq[] {
  let at = 0
  const expect = (...tags: number[]): number => {
    const tag = bytes.readUInt8(at++)
    if (!tags.includes(tag)) throw new RangeError(`unexpected ${tag} at ${at - 1}`)
    return tag
  }
  const bytesOf = (length: number) => bytes.subarray(at, (at += length))
  const length = () => ((at += 4), bytes.readUInt32BE(at - 4))
  const tuple = () => (expect(TUPLE), expect(3))
  const list = () => (expect(LIST), length())
  const atom = () => {
    const size = expect(ATOM, UTF8_ATOM) === ATOM ? ((at += 2), bytes.readUInt16BE(at - 2)) : bytes.readUInt8(at++)
    return bytesOf(size).toString()
  }
  const integer = () => {
    switch (expect(BYTE, INTEGER, BIG)) {
      case BYTE:
        return bytes.readUInt8(at++)
      case INTEGER:
        return ((at += 4), bytes.readInt32BE(at - 4))
      default: {
        const size = bytes.readUInt8(at)
        at += 2 // with the sign
        return bytesOf(size).reduceRight((sum, byte) => sum * 256 + byte, 0)
      }
    }
  }
  const shard = (): ShardSeq => {
    tuple()
    const node = atom()
    list()
    const range = [integer(), integer()].map((end) => end.toString(16).padStart(8, '0')).join('-')
    expect(NIL)
    tuple()
    const seq = integer()
    expect(BINARY)
    const uuid = bytesOf(length()).toString()
    atom()
    return { node, range, uuid, seq }
  }
  const count = list()
  const shards: ShardSeq[] = []
  while (shards.length < count) shards.push(shard())
  return shards
}
