/** Answers of a cluster that stored documents below the quorum. */
import { Readable } from 'node:stream'
import type { Fault } from '../../support/faulty-proxy.ts'

export const answer = (rows: unknown) => ({
  status: 202,
  headers: { 'content-type': 'application/json' },
  body: Readable.from([Buffer.from(JSON.stringify(rows))]),
})

/** Marks the matching documents as stored below the quorum. */
export const acceptedOf =
  (isIt: (id: string) => boolean): Fault =>
  async (exchange) => {
    const chunks: Buffer[] = []
    for await (const chunk of (await exchange.forward()).body) chunks.push(chunk)
    const rows = JSON.parse(Buffer.concat(chunks).toString()) as { id: string }[]
    await exchange.send(answer(rows.map((row) => (isIt(row.id) ? { ...row, accepted: true } : row))))
    exchange.end()
  }

export const accepted = acceptedOf(() => true)
