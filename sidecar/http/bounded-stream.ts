export interface BoundedStreamOptions {
  /** What one reader may leave untaken, bytes, beside what the connection buffers. */
  readonly limit: number
  /** The last words for one that has left more. */
  readonly tooSlow: string
  /** How long it then has to take them before its connection is cut, milliseconds. */
  readonly patienceMs: number
  /** Called before it is over, if its reader was too slow. */
  readonly onSlow: () => void
  /** Called once, when it is over for whatever reason. */
  readonly onClose: () => void
}

/**
 * The body of an endless answer. It never waits for its reader, and never keeps more than a limit for it: one that is
 * slower than that is cut off.
 */
export interface BoundedStream {
  readonly body: ReadableStream<Uint8Array>
  /** Nothing, once it is over. */
  write(text: string): void
  /** After what was written before. */
  close(): void
}

const encoder = new TextEncoder()

export function createBoundedStream({
  limit,
  tooSlow,
  patienceMs,
  onSlow,
  onClose,
}: BoundedStreamOptions): BoundedStream {
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
