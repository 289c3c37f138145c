const NEWLINE = 0x0a

/**
 * Cuts a stream of bytes into lines, each chunk's complete lines together. Works on bytes, so a character split
 * between two chunks is whole again before it is decoded. What follows the last newline is not a line and is dropped:
 * half a row is no row.
 */
export async function* splitLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string[]> {
  let rest: Buffer[] = []
  for await (const bytes of chunks) {
    const chunk = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const lines: string[] = []
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      rest.push(chunk.subarray(start, end))
      lines.push((rest.length === 1 ? rest[0]! : Buffer.concat(rest)).toString('utf8'))
      rest = []
      start = end + 1
    }
    if (start < chunk.length) rest.push(chunk.subarray(start))
    yield lines
  }
}
