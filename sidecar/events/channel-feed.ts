import { randomUUID } from 'node:crypto'
import type { Events } from './channels.ts'

/** Counts of the readers over HTTP. */
export interface ReaderCounts {
  /** Connected now. */
  open: number
  /** Disconnected because they were slow. */
  dropped: number
}

/** Serves one channel to all its readers over HTTP: one subscription, and one text for each message. */
export interface ChannelFeed {
  /**
   * @param onClose called once, when the stream has ended
   * @param lastId the `Last-Event-ID` of a reader that reconnects
   */
  open(onClose: () => void, lastId?: string): BoundedStream
  /** Writes to all readers. */
  write(text: string): void
  /** Ends the feed for all readers. */
  close(): void
}

export interface ChannelFeedOptions {
  readonly events: Events
  readonly channel: string
  /** Maximum unread bytes of a reader. */
  readonly limit: number
  /** How long a slow reader has to read the last message, milliseconds. */
  readonly patienceMs: number
  /** The feed updates these counts. */
  readonly counts: ReaderCounts
  /** Called when the last reader has left and the subscription has ended. */
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

  /** Number of messages after this one; null if unknown. */
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
  /** Maximum unread bytes of the reader, beside the connection's buffer. */
  readonly limit: number
  /** Last message for a slow reader. */
  readonly tooSlow: string
  /** How long the reader has to read that message before its connection is cut, milliseconds. */
  readonly patienceMs: number
  /** Called before the end, if the reader was too slow. */
  readonly onSlow: () => void
  /** Called once, at the end of the stream for any reason. */
  readonly onClose: () => void
}

/**
 * The body of an endless answer. The stream never waits for its reader, and buffers no more than a limit. A slower
 * reader is cut off.
 */
interface BoundedStream {
  readonly body: ReadableStream<Uint8Array>
  /** Does nothing after the end. */
  write(text: string): void
  /** Ends the stream after the earlier texts. */
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
      const fits = stream.desiredSize! >= Math.min(bytes.byteLength, limit) // a long text fits into an empty buffer
      stream.enqueue(fits ? bytes : encoder.encode(tooSlow))
      if (fits) return
      onSlow()
      close()
      setTimeout(() => stream.error(new Error('a slow reader is cut off')), patienceMs).unref() // no effect once read
    },
    close,
  }
}
