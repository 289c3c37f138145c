/**
 * Set up in every test file: a test, and a file as a whole, must leave no socket, server, timer or process behind. An
 * occasional timer of vitest may hide one that a test left. The check of the whole file then finds it. Do not use
 * `test.concurrent`: the guard cannot attribute leaks to concurrent tests.
 */
import { afterAll, aroundEach } from 'vitest'
import { countResources, expectNoLeaks } from './leaks.ts'

const atStart = countResources()

aroundEach(async (runTest) => {
  const before = countResources()
  await runTest()
  await expectNoLeaks(before)
})

afterAll(() => expectNoLeaks(atStart))
