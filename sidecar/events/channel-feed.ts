import { randomUUID } from 'node:crypto'
import type { Events } from './channels.ts'

/** Of readers over HTTP, as plain numbers. */
export interface ReaderCounts {
  /** There now. */
  open: number
  /** Cut off because they were slow. */
  dropped: number
}

/** One channel, for all who read it over HTTP: one subscription, and one text for each message. */
export interface ChannelFeed {
  /**
   * @param onClose called once, when it is over
   * @param lastId the `Last-Event-ID` of a reader that comes back
   */
  open(onClose: () => void, lastId?: string): BoundedStream
  /** To all readers. */
  write(text: string): void
  /** Ends it for all readers. */
  close(): void
}

export interface ChannelFeedOptions {
  readonly events: Events
  readonly channel: string
  /** Bytes that a reader may leave untaken. */
  readonly limit: number
  /** How long one that left more has to take the last words, milliseconds. */
  readonly patienceMs: number
  /** Kept up to date. */
  readonly counts: ReaderCounts
  /** The last reader has gone, and with it the subscription. */
  readonly onEmpty: () => void
}

const SLOW = { error: 'slow_reader', reason: 'This reader did not take its events in time; some of them are lost.' }

export function createChannelFeed(options: ChannelFeedOptions): ChannelFeed {
  const { events, channel, limit, patienceMs, counts, onEmpty } = options
  const life = randomUUID()
  const readers = new Set<BoundedStream>()
  let count = 0
  const ref = events.subscribe(channel, ({ event }) => {
    const data = JSON.stringify(event) ?? 'null'
    write(`id: ${life}/${++count}\ndata: ${data}\n\n`)
  })

  function write(text: string): void {
    for (const reader of readers) reader.write(text)
  }

  /** How many messages came after this one; null if that is unknown. */
  function missedSince(lastId: string): number | null {
    const [, of, seen] = /^(.*)\/(\d+)$/.exec(lastId) ?? []
    return of === life && Number(seen) <= count ? count - Number(seen) : null
  }

  return {
    write,
    open(onClose, lastId) {
      const reader = createBoundedStream({
        limit,
        patienceMs,
        tooSlow: serverEvent('error', SLOW),
        onSlow: () => (counts.dropped += 1),
        onClose() {
          onClose()
          counts.open -= 1
          readers.delete(reader)
          if (readers.size > 0) return
          events.unsubscribe(ref)
          onEmpty()
        },
      })
      readers.add(reader)
      counts.open += 1
      reader.write(': the events of this channel from now on\n\n')
      const missed = lastId === undefined ? 0 : missedSince(lastId)
      if (missed !== 0) reader.write(serverEvent('missed', { missed }))
      return reader
    },
    close() {
      for (const reader of [...readers]) reader.close()
    },
  }
}

const serverEvent = (name: string, data: object) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`

interface BoundedStreamOptions {
  /** What one reader may leave untaken, bytes, beside what the connection buffers. */
  readonly limit: number
  /** The last words for one that has left more. */
  readonly tooSlow: string
  /** How long it then has to take them before its connection is cut, milliseconds. */
  readonly patienceMs: number
  /** Called before it is over, if its reader was too slow. */
  readonly onSlow: () => void
  /** Called once, when it is over for any reason. */
  readonly onClose: () => void
}

/**
 * The body of an endless answer. It never waits for its reader, and never keeps more than a limit for it: one that is
 * slower than that is cut off.
 */
interface BoundedStream {
  readonly body: ReadableStream<Uint8Array>
  /** Nothing, once it is over. */
  write(text: string): void
  /** After what was written before. */
  close(): void
}

const encoder = new TextEncoder()

function createBoundedStream({ limit, tooSlow, patienceMs, onSlow, onClose }: BoundedStreamOptions): BoundedStream {
  let stream!: ReadableStreamDefaultController<Uint8Array>
  let open = true

  const over = () => {
    if (!open) return
    open = false
    onClose()
  }
  const close = () => {
    if (open) stream.close()
    over()
  }
  const body = new ReadableStream<Uint8Array>(
    { start: (controller) => void (stream = controller), cancel: over },
    { highWaterMark: limit, size: (chunk) => chunk.byteLength },
  )

  return {
    body,
    write(text) {
      if (!open) return
      const bytes = encoder.encode(text)
      const fits = stream.desiredSize! >= Math.min(bytes.byteLength, limit) // a long one where nothing else waits
      stream.enqueue(fits ? bytes : encoder.encode(tooSlow))
      if (fits) return
      onSlow()
      close()
      setTimeout(() => stream.error(new Error('a slow reader is cut off')), patienceMs).unref() // nothing, if it was taken
    },
    close,
  }
}
