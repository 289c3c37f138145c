/**
 * The built-in texts of the confirmation mail, in the form in which a user's folder may replace them. No mail has the
 * code that the device shows: that code proves that the reader of the mail has the device in hand.
 */
export const confirmTexts = {
  'confirm.subject.txt': 'Confirm your device',

  'confirm.txt': `Hello,

a device called "{{name}}" asks to be registered with your address, {{owner}}.

If that is your device, and you have it before you, open this link and type in the code that the device shows:

{{link}}

The device can then read and change all that your devices share, invite others, and revoke your other devices. So type
in no code that another person has told or written to you, and none that is not on the screen of your own device.

The link is good for {{expires_in}}.

If it was not you, ignore this mail: nothing happens without the code.
`,

  'confirm.html': `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="color-scheme" content="light dark" />
    <title>Confirm your device</title>
  </head>
  <body style="margin: 0; padding: 24px; font: 16px/1.5 system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif">
    <div style="max-width: 34em; margin: 0 auto">
      <p>Hello,</p>
      <p>a device called <b>{{name}}</b> asks to be registered with your address, {{owner}}.</p>
      <p>
        If that is your device, and you have it before you, open this page and type in the code that the device shows:
      </p>
      <p style="margin: 28px 0">
        <a
          href="{{link}}"
          style="display: inline-block; padding: 14px 28px; border-radius: 8px; background: #b3261e; color: #ffffff; text-decoration: none; font-weight: 600"
          >Confirm the device</a
        >
      </p>
      <p>
        The device can then read and change all that your devices share, invite others, and revoke your other devices.
        <b>So type in no code that another person has told or written to you</b>, and none that is not on the screen of your
        own device.
      </p>
      <p>The link is good for {{expires_in}}.</p>
      <p style="color: #767676">If it was not you, ignore this mail: nothing happens without the code.</p>
      <p style="color: #767676; font-size: 13px; word-break: break-all">
        If the button does not work, copy this address into your browser:<br />{{link}}
      </p>
    </div>
  </body>
</html>
`,
} as const

/**
 * The built-in texts of the mail to a member who is invited to a channel and has no device yet. The mail has no link:
 * only your own text can say where to get the app.
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
