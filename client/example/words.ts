import type { ChannelStatus, RegistrationStatus, SyncStatus } from 'couchdb-sidecar-client'

export interface Words {
  readonly text: string
  readonly look: 'good' | 'wait' | 'bad' | 'off'
}

/** The state of a channel, in words for its user. */
export function wordsOf({ place, state, sync, error }: ChannelStatus): Words {
  if (error) return { text: 'failed', look: 'bad' }
  switch (place) {
    case 'unready':
      return { text: 'being made', look: 'wait' }
    case 'paused':
      return { text: 'paused', look: 'off' }
    case 'invited':
      return { text: 'invitation', look: 'bad' }
    case 'ended':
      return { text: 'left', look: 'off' }
    case 'closed':
      return { text: state === 'closing' ? 'being closed' : 'closed', look: 'off' }
    case 'removed':
      return { text: 'no member any more', look: 'off' }
    case 'synced':
      return wordsOfSync(sync)
  }
}

export function wordsOfSync({ state, pending }: SyncStatus): Words {
  switch (state) {
    case 'live':
    case 'resting':
      return { text: 'in sync', look: 'good' }
    case 'syncing':
      return { text: pending > 0 ? `${pending} to come` : 'syncing', look: 'wait' }
    case 'waiting':
      return { text: 'waiting', look: 'wait' }
    case 'offline':
      return { text: 'offline', look: 'off' }
    case 'denied':
      return { text: 'no access', look: 'bad' }
    case 'failing':
      return { text: 'trying again', look: 'bad' }
    case 'off':
      return { text: 'only here yet', look: 'off' }
  }
}

export function wordsOfRegistration({ state, owner, error }: RegistrationStatus): string {
  switch (state) {
    case 'unsent':
      return 'As soon as there is a network, you get a mail. You can write notes already.'
    case 'new':
      return `A mail to ${owner} is on its way.`
    case 'confirming':
      return `${owner} has got a mail. Open its link and type this code:`
    case 'confirmed':
      return 'Confirmed. Your notes are being fetched.'
    case 'expired':
      return 'The link in the mail was too old. Ask for another one.'
    case 'error':
      if (error?.code === 'refused') return `The server does not take that: ${error.reason}`
      return `That did not work (${error?.code}). Ask for another mail, or begin anew.`
    case 'revoked':
      return 'Another of your devices did that. What is here stays here; register anew to go on.'
    case 'none':
    case 'active':
      return ''
  }
}
