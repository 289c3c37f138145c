/** Receives log lines; a pino logger fits. */
export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  error(fields: object, message: string): void
}
