import { findPerson } from '../channels/person.ts'
import type { Config } from '../config.ts'
import { systemClock } from '../core/clock.ts'
import { SidecarError } from '../core/errors.ts'
import { oneLine } from '../core/visible.ts'
import { mailAgainBy, revokeBy } from '../devices/operate.ts'
import { actOnOne } from '../docstate/operator/actions.ts'
import { operatorIn, withCouch } from './connect.ts'
import type { Terminal } from './terminal.ts'

/** Prints the devices and channels of one user. */
export async function showPerson(
  terminal: Terminal,
  config: Config,
  address: string,
  { json = false }: { readonly json?: boolean },
): Promise<void> {
  const { print, note, signal } = terminal
  await withCouch(config, async (couch) => {
    const { account, devices, channels, isCut } = await findPerson(couch.db(config.controlDb), address, signal)
    const shown = {
      account: account ? String(account.state) : null,
      devices: devices.map(({ _id, name = null, state }) => ({ id: _id, name, state })),
      channels: channels.map(({ _id, name, state, database }) => ({ id: _id, name, state, database })),
    }
    if (isCut) note('too many devices wait to be confirmed: some were not searched')
    if (json) return print(JSON.stringify(shown))
    if (!account && devices.length === 0) throw new SidecarError('not-found', `no user has the address ${address}`)
    print(account ? `account  ${shown.account}` : 'no account yet: no device is confirmed')
    for (const { id, name, state } of shown.devices)
      print(oneLine(`device   ${id}  ${String(state)}${name === null ? '' : `  ${name}`}`))
    for (const { id, name, state, database } of shown.channels)
      print(oneLine(`channel  ${id}  ${String(state)}  ${name}  ${database}`))
  })
}

/** Ends the access of a device. */
export const revokeDevice = (terminal: Terminal, config: Config, id: string): Promise<void> =>
  act(terminal, config, id, 'revoked', revokeBy)

/** Sends the confirmation mail of a device again. */
export const mailDeviceAgain = (terminal: Terminal, config: Config, id: string): Promise<void> =>
  act(terminal, config, id, 'to be mailed again', mailAgainBy)

async function act(
  terminal: Terminal,
  config: Config,
  id: string,
  done: string,
  action: typeof revokeBy,
): Promise<void> {
  await withCouch(config, async (couch) => {
    const by = operatorIn(config)
    const result = await actOnOne(couch.db(config.controlDb), id, action(by, systemClock.now()), terminal.signal)
    if (result.kind === 'done') return terminal.print(oneLine(`${id} is ${done}`))
    const why = {
      'not-found': `there is no device "${id}"`,
      'nothing-to-do': `${id} is not a device, or its state does not allow this`,
      changed: `${id} changed in the meantime and was left as it is`,
      refused: `CouchDB refused the change of ${id}`,
    }[result.kind]
    throw new SidecarError(result.kind, oneLine(why))
  })
}
