import { hash } from 'node:crypto'

/** 32 bits of any text, even for texts that differ in one letter. */
const hash32 = (text: string): number => Buffer.from(hash('md5', text, 'buffer')).readUInt32LE()

/** The finalizer of MurmurHash3: every bit of the input changes every bit of the answer in half of all cases. */
function mix(bits: number): number {
  let mixed = bits ^ (bits >>> 16)
  mixed = Math.imul(mixed, 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return (mixed ^ (mixed >>> 16)) >>> 0
}

/**
 * Who is responsible for a document: the worker for which the hash of its name and the document's id is the highest
 * (rendezvous hashing). All who know the same workers agree. Undefined where there are no workers.
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
