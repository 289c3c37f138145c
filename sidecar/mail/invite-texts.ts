/**
 * The built-in texts of the mail to somebody who is invited to a channel and has no device yet. It has no link: where the
 * app is to be had, only yours can tell.
 */
export const inviteTexts = {
  'invite.subject.txt': 'You are invited to a channel',

  'invite.txt': `Hello,

{{owner}} invites you to the channel "{{channel}}".

To see it, register a device with this address, {{member}}. The channel is there as soon as the device is confirmed.

All members of the channel see your address, and what you write there.

If you do not know {{owner}}, ignore this mail: nothing happens.
`,

  'invite.html': `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="color-scheme" content="light dark" />
    <title>You are invited</title>
  </head>
  <body style="margin: 0; padding: 24px; font: 16px/1.5 system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif">
    <div style="max-width: 34em; margin: 0 auto">
      <p>Hello,</p>
      <p>{{owner}} invites you to the channel <b>{{channel}}</b>.</p>
      <p>
        To see it, register a device with this address, {{member}}. The channel is there as soon as the device is
        confirmed.
      </p>
      <p>All members of the channel see your address, and what you write there.</p>
      <p style="color: #767676">If you do not know {{owner}}, ignore this mail: nothing happens.</p>
    </div>
  </body>
</html>
`,
} as const
