import type { Memory, Share } from '../../core/memory.ts'
import type { Fly } from '../fly.ts'
import type { Registration } from '../types.ts'

/** The way of the documents of one handler, with its own part of the memory: it holds up no other. */
export interface Lane {
  readonly registration: Registration
  readonly fly: Fly
  readonly share: Share
}

export type LaneOf = (registration: Registration) => Lane

export function createLanes(memory: Memory, createFly: (registration: Registration) => Fly): LaneOf {
  const lanes = new Map<Registration, Lane>()
  return (registration) => {
    const known = lanes.get(registration)
    if (known) return known
    const lane = { registration, fly: createFly(registration), share: memory.share() }
    lanes.set(registration, lane)
    return lane
  }
}
