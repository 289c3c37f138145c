import { isIP, isIPv6 } from 'node:net'
import { getConnInfo } from '@hono/node-server/conninfo'
import type { Context } from 'hono'

/**
 * Whom requests are counted for: an IPv4 address, or the /64 of an IPv6 address, all of which one client has for itself.
 *
 * @param proxies how many proxies stand in front. Each adds the address it was called from to `X-Forwarded-For`, at the
 *   end; what stands before those anybody may have invented.
 */
export function clientAddress(c: Context, proxies: number): string {
  const socket = getConnInfo(c).remote.address ?? 'unknown'
  if (proxies === 0) return networkOf(socket)
  const hops = (c.req.header('x-forwarded-for') ?? '').split(',').map((hop) => withoutPort(hop.trim()))
  const told = hops.at(-proxies) ?? hops[0]!
  return networkOf(isIP(told) ? told : socket)
}

/** `1.2.3.4` for itself and for `::ffff:1.2.3.4`, `2001:db8:0:1::/64` for `2001:db8:0:1:2:3:4:5`. */
export function networkOf(address: string): string {
  const plain = address.replace(/%.*$/, '').replace(/^::ffff:(?=\d+\.)/i, '')
  if (!isIPv6(plain)) return plain
  const canonical = new URL(`http://[${plain}]`).hostname.slice(1, -1)
  const [head = [], tail = []] = canonical.split('::').map((part) => part.split(':').filter(Boolean))
  const zeros = Array<string>(8 - head.length - tail.length).fill('0')
  return `${[...head, ...zeros, ...tail].slice(0, 4).join(':')}::/64`
}

/** Some proxies write `1.2.3.4:5678` or `[2001:db8::1]:5678`. */
const withoutPort = (hop: string): string =>
  /^\[([^\]]*)\](?::\d+)?$/.exec(hop)?.[1] ?? hop.replace(/^(\d+(?:\.\d+){3}):\d+$/, '$1')
