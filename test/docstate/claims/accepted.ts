/** Answers as of a cluster that stored what it was given on too few nodes. */
import { Readable } from 'node:stream'
import type { Fault } from '../../support/faulty-proxy.ts'

export const answer = (rows: unknown) => ({
  status: 202,
  headers: { 'content-type': 'application/json' },
  body: Readable.from([Buffer.from(JSON.stringify(rows))]),
})

/** As of a cluster that stored it on too few nodes. */
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
