import { createHash, timingSafeEqual } from 'node:crypto'

const digest = (text: string) => createHash('sha256').update(text).digest()

/** Compares texts in constant time, so that the duration does not reveal a partial match. */
export const sameText = (one: string, other: string): boolean => timingSafeEqual(digest(one), digest(other))
