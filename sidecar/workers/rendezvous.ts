import { hash } from 'node:crypto'

/** A 32-bit hash of a text, evenly spread even for texts that differ in one letter. */
const hash32 = (text: string): number => Buffer.from(hash('md5', text, 'buffer')).readUInt32LE()

/** The finalizer of MurmurHash3: each input bit changes each output bit in half of all cases. */
function mix(bits: number): number {
  let mixed = bits ^ (bits >>> 16)
  mixed = Math.imul(mixed, 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return (mixed ^ (mixed >>> 16)) >>> 0
}

/**
 * Finds the worker for a document: the highest hash of worker name and document id wins (rendezvous hashing). All
 * processes with the same list of workers agree. Undefined without workers.
 */
export function createRendezvous(workers: readonly string[]): (docId: string) => string | undefined {
  const seeds = workers.map((worker) => [worker, hash32(worker)] as const)
  return (docId) => {
    const bits = hash32(docId)
    let winner: string | undefined
    let highest = -1
    for (const [worker, seed] of seeds) {
      const score = mix(bits ^ seed)
      if (score > highest || (score === highest && worker > winner!)) [winner, highest] = [worker, score]
    }
    return winner
  }
}
