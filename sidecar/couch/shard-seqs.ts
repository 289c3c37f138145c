/**
 * Decodes CouchDB sequences: a sequence holds the position of each shard's file. A file contains its uuid, so a
 * restored older copy has the same uuid and a lower position. `_changes` does not report this. If the checkpoint is
 * ahead of the file, `_changes` sends nothing until the file has grown beyond the checkpoint.
 *
 * The text after the dash is Erlang's external term format: a list of `{Node, [Begin, End], {Seq, Uuid, Node}}`. It has
 * the first seven characters of the uuid. Other formats (PouchDB, shards that were just split) are not decoded.
 */
import { inflateSync } from 'node:zlib'
import { z } from 'zod'
import type { Couch } from './client.ts'
import type { CallOptions } from './database.ts'
import { seqText, type DbInfo, type Seq } from './documents.ts'
import { CouchError } from './couch-errors.ts'
import { requestNode } from './node.ts'

/** Position of a database. */
export interface Extent {
  /** The number before the dash of its `update_seq`. This number grows with every change, at each node. */
  readonly changes: number
  /** The sequence as it was read. */
  readonly seq?: Seq | undefined
  /** Position of each file that answered, by its uuid; none if unknown. */
  readonly files?: Files | undefined
}

export type Files = Readonly<Record<string, number>>

interface ShardSeq {
  readonly node: string
  /** Such as `00000000-7fffffff`. */
  readonly range: string
  readonly uuid: string
  readonly seq: number
}

/** The number before the dash of a sequence. */
export const changesAt = (seq: Seq): number => parseInt(seqText(seq)) || 0

/** The position that a sequence holds. Decoding takes 0.1 ms, so it happens once, at the first read of `files`. */
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
 * Whether a database has lost changes since `before`: an older copy of some or all of its files was restored. Only
 * files in both positions are compared: on a cluster the files differ. If no files are known, the number decides.
 */
export function isBehind(now: Extent, before: Extent): boolean {
  if (now.seq !== undefined && now.seq === before.seq) return false
  const { files = {} } = now
  const known = Object.entries(before.files ?? {})
  if (known.length === 0 && Object.keys(files).length === 0) return now.changes < before.changes
  return known.some(([uuid, seq]) => (files[uuid] ?? seq) < seq)
}

/**
 * Whether a database may have changed since `done`. Each copy of a shard has its own count, and a copy that was offline
 * counts less. So a file is compared only with itself, and an unknown file counts as changed.
 */
export function hasNews(now: Extent, done: Extent): boolean {
  if (now.seq !== undefined && now.seq === done.seq) return false
  const files = Object.entries(now.files ?? {})
  if (files.length === 0) return now.changes !== done.changes
  return files.some(([uuid, seq]) => seq !== done.files?.[uuid])
}

/** The higher of the two positions of each file. */
export function furthest(a: Files = {}, b: Files = {}): Files {
  const further = Object.entries(b).filter(([uuid, seq]) => seq > (a[uuid] ?? -1))
  return { ...a, ...Object.fromEntries(further) }
}

/** All files known so far: on a cluster each answer comes from other copies. */
export function filesAfter(now: Extent, before: Extent | undefined): Files | undefined {
  if (!before?.files) return now.files
  return now.seq !== undefined && now.seq === before.seq ? before.files : { ...before.files, ...now.files }
}

const shardFile = z.object({ uuid: z.string(), update_seq: z.number() })

/**
 * Whether the database has lost changes from before this checkpoint. If `info` comes from other copies, it requests the
 * files of the checkpoint, which only a server admin may do. A copy that does not answer counts as intact. Throws the
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
  if (others.length > (info.cluster?.q ?? 0)) return false // a forged checkpoint, not of this database
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
    const file = await requestNode(couch, node, shard, shardFile, options)
    return file.uuid.startsWith(uuid) && file.update_seq < seq
  } catch (thrown) {
    options?.signal?.throwIfAborted()
    if (thrown instanceof CouchError) return false
    throw thrown
  }
}

/** Maximum size of an unpacked sequence: a client may have sent it. */
const MOST_BYTES = 256 * 1024
const [COMPRESSED, LIST, NIL, TUPLE] = [80, 108, 106, 104]
const [BYTE, INTEGER, BIG, BINARY, ATOM, UTF8_ATOM] = [97, 98, 110, 109, 100, 119]

/** The shards in a sequence; empty if the sequence is not CouchDB's. */
function decode(seq: Seq): ShardSeq[] {
  try {
    const text = seqText(seq)
    return readShards(unpack(Buffer.from(text.slice(text.indexOf('-') + 1), 'base64url')))
  } catch {
    return [] // not a list of shards, or not packed data: no other error can occur
  }
}

const unpack = (bytes: Buffer): Buffer =>
  bytes[1] === COMPRESSED ? inflateSync(bytes.subarray(6), { maxOutputLength: MOST_BYTES }) : bytes.subarray(1)

/** Throws `RangeError` at the first invalid byte. */
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
        at += 2 // size and sign
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
