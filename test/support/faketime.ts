import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

const LIBRARIES = '/usr/lib'

/** The library that gives a process another time. Debian's package `libfaketime` installs it. */
export const findFaketime = (): string | undefined =>
  existsSync(LIBRARIES)
    ? readdirSync(LIBRARIES)
        .map((name) => join(LIBRARIES, name, 'faketime/libfaketimeMT.so.1'))
        .find(existsSync)
    : undefined
