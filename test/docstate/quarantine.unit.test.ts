import { expect, test } from 'vitest'
import { systemClock } from '../../sidecar/core/clock.ts'
import { Quarantine } from '../../sidecar/docstate/quarantine.ts'

const turn = () => new Promise((resolve) => setTimeout(resolve, 5))

/** Records the names that enter, in order. */
function watch(quarantine: Quarantine) {
  const reported: string[] = []
  return {
    reported,
    enter: async (name: string, timesLost: number) => {
      const waits = quarantine.enter(timesLost)
      if (waits) await waits
      reported.push(name)
    },
    leave: (timesLost: number) => quarantine.leave(timesLost),
  }
}

test('any number of documents that were never lost enter at once', () => {
  const quarantine = new Quarantine(systemClock)
  for (let count = 0; count < 1000; count++) expect(quarantine.enter(0)).toBeUndefined()
})

test('a document lost twice waits for all running documents, and all other documents wait for it', async () => {
  const { enter, leave, reported } = watch(new Quarantine(systemClock))
  await enter('a', 0)
  await enter('b', 1)
  void enter('suspect', 2)
  void enter('c', 0)
  await turn()
  leave(0)
  await turn()
  expect(reported).toEqual(['a', 'b'])
  leave(1)
  await turn()
  expect(reported).toEqual(['a', 'b', 'suspect'])
  void enter('d', 1)
  leave(2)
  await turn()
  expect(reported).toEqual(['a', 'b', 'suspect', 'c', 'd'])
})

test('the wait for an endless handler or for a suspect has a limit', async () => {
  const { enter, leave, reported } = watch(new Quarantine(systemClock, 50))
  await enter('endless', 0)
  await enter('suspect', 2)
  await enter('a', 0)
  expect(reported).toEqual(['endless', 'suspect', 'a'])
  leave(2)
  leave(0)
  await enter('another suspect', 2)
  leave(2)
  await enter('b', 0)
  expect(reported.slice(3)).toEqual(['another suspect', 'b'])
})

test('suspects run one at a time', async () => {
  const quarantine = new Quarantine(systemClock)
  let running = 0
  const way = async () => {
    running += 1
    expect(running).toBe(1)
    await turn()
    running -= 1
  }
  await Promise.all([1, 2, 3].map(() => quarantine.apart(way)))
})
