import { createHash, type Hash } from 'node:crypto'
import { inspect } from 'node:util'
import { Readable } from 'node:stream'
import { isObject } from '../../ddocs/lib/document.ts'
import type { Clock } from '../core/clock.ts'
import { Reject, SidecarError } from '../core/errors.ts'
import { SHOWN } from '../core/failure.ts'
import type { Database } from '../couch/database.ts'
import type { StoredDoc } from '../couch/documents.ts'
import { isCouchError } from '../couch/couch-errors.ts'
import { writtenFrom, type Written } from '../couch/written.ts'
import type { Attempt } from './attempt.ts'
import { DUE, requireStored } from './claims/claims.ts'
import { LONGEST_LEASE_MS } from './claims/lease.ts'
import { docstateOf } from './classify.ts'
import { withDocstate } from './outcome-documents.ts'
import type { Attachment, AttachmentBody } from './types.ts'
import type { WriteDoc } from './write-doc.ts'

/** Metadata of an attachment in its document; CouchDB leaves out the body. */
export interface Stub {
  readonly stub: true
  readonly content_type: string
  readonly revpos: number
  readonly length: number
  readonly digest: string
}

export interface AttachmentsOptions {
  readonly database: Pick<Database, 'attach' | 'attachment'>
  readonly writeDoc: WriteDoc
  readonly clock: Pick<Clock, 'ticks'>
}

/** Maximum bytes of a body held in memory. Such a body can be resent if the answer is lost, and its write is quick. */
const MOST_HELD = 1024 * 1024
const SHORT_MS = 60_000

/** MD5 in the notation of CouchDB's `digest` fields. */
const digested = (hash: Hash) => `md5-${hash.digest('base64')}`
export const digestOf = (bytes: Uint8Array): string => digested(createHash('md5').update(bytes))

/** A MIME type that fits into an HTTP header. */
const TYPE = /^[\w.+-]+\/[\w.+-]+[\t\x20-\x7e]*$/

/** @param signal an abort cancels the download */
export async function readAttachment(
  database: Pick<Database, 'attachment'>,
  id: string,
  name: string,
  signal: AbortSignal,
): Promise<Attachment | undefined> {
  const found = await database.attachment(id, name, signal)
  if (!found) return undefined
  const body = Readable.from(found.bytes, { objectMode: false })
  body.on('error', () => undefined) // a reader gets the error; without a reader, it must not end the process
  return { type: found.type, body }
}

/**
 * Stores an attachment of an attempt's document in a separate write, which keeps the claim. Claim renewals wait for
 * this write. So it first renews a claim that is due; a long body extends the lease to the maximum duration of its
 * upload.
 */
export async function attach(
  { database, writeDoc, clock }: AttachmentsOptions,
  attempt: Attempt,
  name: string,
  body: AttachmentBody,
  type: string,
): Promise<void> {
  check(name, (given) => given !== '' && !given.startsWith('_'), 'a name that does not begin with _')
  check(type, (given) => TYPE.test(given), 'a MIME type, such as image/jpeg')
  attempt.signal.throwIfAborted()
  const content = await held(chunksOf(body))
  const isShort = content instanceof Uint8Array && content.length <= MOST_HELD
  const measured = createMeasured(content)
  let isSent = false

  async function write(doc: StoredDoc): Promise<Written> {
    if (isSent && !(content instanceof Uint8Array)) throw new NotSent(notTwice(name))
    isSent = true
    try {
      const options = { signal: attempt.signal, timeoutMs: isShort ? SHORT_MS : LONGEST_LEASE_MS }
      const rev = await database.attach(doc, name, { type, bytes: measured.bytes() }, options)
      return { kind: 'stored', rev }
    } catch (thrown) {
      if (measured.broken) throw new NotSent(measured.broken.cause)
      if (!isCouchError(thrown) || thrown.code === 'unauthorized') throw thrown
      const { code, error, reason } = thrown
      if (code === 'too_large') return { kind: 'refused', code, reason } // a proxy may send it, too
      if (error === undefined) throw thrown
      return writtenFrom({ id: doc._id, error, reason })
    }
  }

  /** Other renewals wait for this write, and for all that the handler began together with it. */
  async function renewFirst(): Promise<void> {
    const { leaseMs, provenAt } = attempt
    const isDue = leaseMs !== undefined && clock.ticks() - provenAt! >= leaseMs * DUE
    if (!isShort) await renew(writeDoc, clock, attempt, LONGEST_LEASE_MS)
    else if (isDue) await renew(writeDoc, clock, attempt, leaseMs)
  }

  await attempt.mutex(async () => {
    attempt.signal.throwIfAborted()
    await renewFirst()
    const outcome = await writeDoc(attempt, attempt.doc, { write }).catch((thrown: unknown) => {
      throw thrown instanceof NotSent ? thrown.cause : thrown
    })
    requireStored(attempt, outcome)
    const stub: Stub = { stub: true, content_type: type, revpos: parseInt(attempt.doc._rev), ...measured.measures() }
    const { _attachments: others } = attempt.doc
    attempt.doc = { ...attempt.doc, _attachments: { ...(isObject(others) ? others : {}), [name]: stub } }
  })
}

function check(given: unknown, isFit: (text: string) => boolean, expected: string): void {
  if (typeof given === 'string' && isFit(given)) return
  throw new Reject('bad_attachment', `ctx.attach: expected ${expected}, got ${inspect(given, SHOWN)}`)
}

async function renew(
  writeDoc: WriteDoc,
  clock: Pick<Clock, 'ticks'>,
  attempt: Attempt,
  leaseMs: number,
): Promise<void> {
  const docstate = docstateOf(attempt.doc)
  if (!docstate?.claim) return
  const sentAt = clock.ticks()
  const renewed = withDocstate(attempt.doc, { ...docstate, claim: { ...docstate.claim, lease_ms: leaseMs } })
  const outcome = await writeDoc(attempt, renewed)
  requireStored(attempt, outcome)
  if (outcome.kind === 'stored') attempt.holds(sentAt, leaseMs)
}

/** The body failed, not CouchDB: a retry is useless. */
class NotSent extends Error {
  override readonly name = 'NotSent'
  constructor(cause: unknown) {
    super('the body of an attachment was not sent', { cause })
  }
}

const notTwice = (name: string) =>
  new SidecarError('attach_failed', `${name} was not stored, and a stream cannot be sent twice`)

async function* chunksOf(body: AttachmentBody): AsyncGenerator<Uint8Array> {
  if (typeof body === 'string' || body instanceof Uint8Array) yield Buffer.from(body)
  else if (typeof body?.[Symbol.asyncIterator] === 'function') for await (const chunk of body) yield Buffer.from(chunk)
  else throw new Reject('bad_attachment', `ctx.attach: expected a text, bytes or a stream, got ${inspect(body, SHOWN)}`)
}

/** Returns the whole body if it is short; otherwise the chunks read so far, followed by the rest. */
async function held(chunks: AsyncGenerator<Uint8Array>): Promise<Uint8Array | AsyncIterable<Uint8Array>> {
  const first: Uint8Array[] = []
  for (let length = 0; length <= MOST_HELD;) {
    const next = await chunks.next()
    if (next.done) return Buffer.concat(first)
    first.push(next.value)
    length += next.value.length
  }
  return (async function* () {
    yield* first.splice(0)
    yield* chunks
  })()
}

/** Measures length and digest of a body while it is sent. */
function createMeasured(content: Uint8Array | AsyncIterable<Uint8Array>) {
  let length = 0
  let hash = createHash('md5')
  let broken: { readonly cause: unknown } | undefined
  async function* measuring(chunks: AsyncIterable<Uint8Array>) {
    try {
      for await (const chunk of chunks) {
        length += chunk.length
        hash.update(chunk)
        yield chunk
      }
    } catch (cause) {
      broken = { cause }
      throw cause
    }
  }
  return {
    bytes() {
      if (!(content instanceof Uint8Array)) return measuring(content)
      length = content.length
      hash = createHash('md5').update(content)
      return content
    },
    /** The error thrown by the body's source; undefined if none. */
    get broken() {
      return broken
    },
    measures: () => ({ length, digest: digested(hash) }),
  }
}
