import { isIP } from 'node:net'
import { getConnInfo } from '@hono/node-server/conninfo'
import type { Context } from 'hono'
import ipaddr from 'ipaddr.js'

/**
 * The client that requests count against: an IPv4 address, or the /64 of an IPv6 address, which one client owns.
 *
 * @param proxies the number of proxies in front. Each appends the address of its own client to `X-Forwarded-For`;
 *   earlier entries can be forged.
 */
export function clientAddress(c: Context, proxies: number): string {
  const socket = getConnInfo(c).remote.address ?? 'unknown'
  if (proxies === 0) return networkOf(socket)
  const hops = (c.req.header('x-forwarded-for') ?? '').split(',').map((hop) => withoutPort(hop.trim()))
  const clientHop = hops.at(-proxies) ?? hops[0]!
  return networkOf(isIP(clientHop) ? clientHop : socket)
}

/** `1.2.3.4` for itself and for `::ffff:1.2.3.4`, `2001:db8:0:1::/64` for `2001:db8:0:1:2:3:4:5`. */
export function networkOf(address: string): string {
  if (!ipaddr.isValid(address)) return address
  const client = ipaddr.process(address) // an IPv4 address in IPv6 becomes IPv4
  return client instanceof ipaddr.IPv4
    ? client.toString()
    : `${client.toNormalizedString().split(':').slice(0, 4).join(':')}::/64`
}

/** Removes the port: some proxies write `1.2.3.4:5678` or `[2001:db8::1]:5678`. */
const withoutPort = (hop: string): string =>
  /^\[([^\]]*)\](?::\d+)?$/.exec(hop)?.[1] ?? hop.replace(/^(\d+(?:\.\d+){3}):\d+$/, '$1')
