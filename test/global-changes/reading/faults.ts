import { Readable } from 'node:stream'
import { json } from 'node:stream/consumers'
import type { Fault } from '../../support/faulty-proxy.ts'

/** Holds a request, or its answer, until the test releases it. */
export function hold(what: 'request' | 'answer') {
  let isThere = false
  let release = () => {}
  const released = new Promise<void>((resolve) => (release = resolve))
  const wait = () => {
    isThere = true
    return released
  }
  const fault: Fault = async (exchange) => {
    if (what === 'request') await wait()
    const answer = await exchange.forward()
    if (what === 'answer') await wait()
    await exchange.send(answer)
    exchange.end()
  }
  return { fault, release, isThere: () => isThere }
}

/** Changes the JSON of the server’s answer. */
export const changeJson =
  (change: (said: object) => object): Fault =>
  async (exchange) => {
    const answer = await exchange.forward()
    const said = (await json(Readable.from(answer.body))) as object
    await exchange.send({ ...answer, body: Readable.from([Buffer.from(JSON.stringify(change(said)))]) })
    exchange.end()
  }
