/** As `fetch`, with the credentials of the URL in a header: `fetch` rejects them in a URL. */
export function ask(url: string, path: string, init: RequestInit = {}): Promise<Response> {
  const { origin, username, password } = new URL(url)
  const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
  return fetch(`${origin}/${path}`, {
    ...init,
    headers: { ...(init.headers as Record<string, string>), authorization },
  })
}
