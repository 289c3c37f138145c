import { expect, test } from 'vitest'
import { seqFrom } from '../../sidecar/couch/documents.ts'
import { Progress } from '../../sidecar/feed/progress.ts'

test('the mark does not pass an open row', () => {
  const progress = new Progress()
  progress.skip(seqFrom('1'))
  const settle2 = progress.begin(seqFrom('2'))
  progress.skip(seqFrom('3'))
  expect(progress.mark).toBe('1')
  settle2()
  expect(progress.mark).toBe('3')
})

test('in any order of settling, the mark is the last row up to which all rows are settled', () => {
  let seed = 7
  const random = () => (seed = (seed * 16807) % 2147483647) / 2147483647
  for (let round = 0; round < 200; round++) {
    const progress = new Progress()
    const settled: boolean[] = []
    const open: { index: number; settle: () => void }[] = []
    for (let step = 0; step < 60; step++) {
      const index = settled.length
      const dice = random()
      if (dice < 0.3) {
        progress.skip(seqFrom(index))
        settled.push(true)
      } else if (dice < 0.6 || open.length === 0) {
        open.push({ index, settle: progress.begin(seqFrom(index)) })
        settled.push(false)
      } else {
        const [picked] = open.splice(Math.floor(random() * open.length), 1)
        picked!.settle()
        settled[picked!.index] = true
      }
      const firstOpen = settled.indexOf(false)
      const expected = (firstOpen < 0 ? settled.length : firstOpen) - 1
      expect(progress.mark).toBe(expected < 0 ? undefined : expected)
    }
  }
})

test('a row that is settled twice counts once', () => {
  const progress = new Progress()
  const settle1 = progress.begin(seqFrom('1'))
  progress.begin(seqFrom('2'))
  settle1()
  settle1()
  expect(progress.mark).toBe('1')
})

test('the count of open rows is exact', () => {
  const progress = new Progress()
  const settle = [1, 2, 3].map((seq) => progress.begin(seqFrom(seq)))
  progress.skip(seqFrom(4))
  expect(progress.open).toBe(3)
  settle[1]!()
  settle[1]!()
  expect(progress.open).toBe(2)
  settle[0]!()
  settle[2]!()
  expect(progress.open).toBe(0)
})
