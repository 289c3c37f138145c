/** Commands for the devices of a user. */
import { expect, test } from 'vitest'
import { createControl } from '../acceptance/control.ts'
import { settingsOf } from '../acceptance/registration.ts'
import { runCommand } from '../acceptance/start.ts'

test('commands show the devices of an address, send their mails again, and revoke them', async () => {
  const control = await createControl()
  const settings = settingsOf(control)
  await runCommand(['deploy'], settings)
  const device = { type: 'device', owner: 'ann@example.com', device_code: '1234', name: 'phone' }
  await control.admin.put({ ...device, _id: 'd1', state: 'confirming' })
  await control.admin.put({ ...device, _id: 'd2', state: 'error', error: { code: 'mail_refused', reason: 'x' } })
  await control.admin.put({ ...device, _id: 'd3', state: 'expired', owner: 'bob@example.com' })
  const shown = await runCommand(['user', 'Ann@Example.com'], settings)
  expect(shown.stdout.split('\n')).toEqual(
    expect.arrayContaining([
      'no account yet: no device is confirmed',
      'device   d1  confirming  phone',
      'device   d2  error  phone',
    ]),
  )
  expect(shown.stdout).not.toContain('d3')
  expect(await runCommand(['mail', 'd2'], settings)).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('d2 is to be mailed again') as unknown,
  })
  const mailed = await control.admin.get('d2')
  expect(mailed).toMatchObject({
    state: 'new',
    docstate: { state: 'new', asked: { by: expect.any(String) as unknown } },
  })
  expect(mailed).not.toHaveProperty('error')
  expect(await runCommand(['revoke', 'd1'], settings)).toMatchObject({ code: 0 })
  expect(await control.admin.get('d1')).toMatchObject({ state: 'revoked', docstate: { asked: {} } })
  for (const args of [
    ['revoke', 'd1'],
    ['revoke', 'none'],
    ['mail', 'd1'],
    ['user', 'carl@example.com'],
  ])
    expect(await runCommand(args, settings), args.join(' ')).toMatchObject({ code: 1, stdout: '' })
  const json = await runCommand(['user', 'ann@example.com', '--json'], settings)
  expect(JSON.parse(json.stdout)).toMatchObject({ account: null, channels: [], devices: [{ id: 'd2', state: 'new' }] })
})
