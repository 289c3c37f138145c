/**
 * Set up in every test file: a test, and a file as a whole, leaves no socket, server, timer or process behind.
 *
 * A timer that vitest itself has running now and then may hide one left by a test; then the check of the file finds it.
 * Tests that run at the same time in one file (`test.concurrent`) cannot be told apart, and are not for this house.
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
