import { expect, test } from 'vitest'
import { createClicks, type SharedClick } from '../../sidecar/devices/confirmations.ts'
import { hashingOf, makePassword } from '../../sidecar/devices/passwords.ts'
import { createLatch } from '../docstate/rig.ts'

const made = makePassword(hashingOf(true))
const sees = (shared: SharedClick) => Promise.resolve(shared.made === made)
const makes = (shared: SharedClick) => {
  shared.made = made
  return Promise.resolve()
}
const shows = (shared: SharedClick) => {
  shared.shown = true
  return Promise.resolve()
}

test('a password that no page has shown is available to the next click on its link only', async () => {
  const clicks = createClicks()
  await clicks.during('a', makes)
  expect(await clicks.during('a', sees)).toBe(true)
  expect(await clicks.during('b', sees)).toBe(false)
})

test('an interrupted click leaves the password to the next click', async () => {
  const clicks = createClicks()
  const lost = clicks.during('a', async (shared) => {
    await makes(shared)
    throw new Error('the browser has gone')
  })
  await expect(lost).rejects.toThrow('gone')
  expect(await clicks.during('a', sees)).toBe(true)
})

test('a password is forgotten after a page has shown it', async () => {
  const clicks = createClicks()
  await clicks.during('a', makes)
  await clicks.during('a', shows)
  expect(await clicks.during('a', sees)).toBe(false)
})

test('concurrent clicks share a password, also after one page has shown it', async () => {
  const clicks = createClicks()
  const latch = createLatch()
  const slow = clicks.during('a', async (shared) => {
    await latch.opened
    return shared.made
  })
  await clicks.during('a', makes)
  await clicks.during('a', shows)
  latch.open()
  expect(await slow).toBe(await made)
  expect(await clicks.during('a', sees)).toBe(false)
})

test('unclaimed passwords are forgotten after a thousand clicks, the oldest first', async () => {
  const clicks = createClicks()
  for (let i = 0; i <= 1000; i++) await clicks.during(`${i}`, makes)
  expect(await clicks.during('1000', sees)).toBe(true)
  expect(await clicks.during('1', sees)).toBe(true)
  expect(await clicks.during('0', sees)).toBe(false)
})
