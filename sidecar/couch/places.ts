import { Slots } from '../core/slots.ts'

/** Does the work in one of the places, when there is one; `first` before all that wait without it. */
export type InPlace = <T>(work: () => Promise<T>, first?: boolean, signal?: AbortSignal) => Promise<T>

/** @param kept so many of `count` are taken only by those that go first: a slow answer never keeps them waiting */
export function createPlaces(count: number, kept: number): InPlace {
  const places = new Slots(() => count)
  const unkept = new Slots(() => Math.max(1, count - kept))
  return (work, first, signal) => {
    const inPlace = () => places.during(work, first, signal)
    return first ? inPlace() : unkept.during(inPlace, false, signal)
  }
}
