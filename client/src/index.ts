export type { Client, ClientOptions } from './api.ts'
export { createClient } from './client.ts'
export type { ChannelChange, Close, NewChannel } from './control/channel-requests.ts'
export type { Where } from './control/subscription-requests.ts'
export { ClientError, type ClientErrorCode } from './errors.ts'
export type { Hashing } from './registration/credentials.ts'
export type { Registering } from './registration/registration.ts'
export type {
  ChannelStatus,
  DeviceStatus,
  Events,
  Failure,
  Place,
  RegistrationStatus,
  Status,
  SyncStatus,
} from './client-status.ts'
