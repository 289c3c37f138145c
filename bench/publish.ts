import { EventEmitter } from 'node:events'
import pino from 'pino'
import { createEvents } from '../sidecar/events/channels.ts'
import { median } from './figures.ts'

const TURNS = 5_000_000
const ROUNDS = 7

/**
 * Nanoseconds for one call of `turn`, as the median of some rounds. Each call gets another number, so that none is
 * optimized away.
 */
function timeOf(turn: (n: number) => void): number {
  const rounds = Array.from({ length: ROUNDS + 1 }, () => {
    const began = process.hrtime.bigint()
    for (let n = 0; n < TURNS; n++) turn(n)
    return Number(process.hrtime.bigint() - began) / TURNS
  })
  return median(rounds.slice(1)) // the first round is compiled while it runs
}

/** The cost of publishing a saved document, in nanoseconds: without a listener, and with one. */
export function measurePublish(): { empty: number; none: [number, number]; one: [number, number] } {
  const events = createEvents({ log: pino({ level: 'silent' }) })
  const emitter = new EventEmitter()
  let sum = 0
  const empty = (n: number) => void (sum ^= n)
  const publish = (n: number) =>
    events
      .channel('document:saved')
      ?.publish({ database: 'orders', id: `o${n}`, type: 'order', state: 'paid', next: 'invoiced', rev: '2-x' })
  const emit = (n: number) =>
    emitter.emit('document:saved', {
      database: 'orders',
      id: `o${n}`,
      type: 'order',
      state: 'paid',
      next: 'invoiced',
      rev: '2-x',
    })
  const none: [number, number] = [timeOf(publish), timeOf(emit)]
  events.subscribe('document:saved', () => void sum++)
  emitter.on('document:saved', () => void sum++)
  return { empty: timeOf(empty), none, one: [timeOf(publish), timeOf(emit)] }
}
