import type { TemplateSource } from "./compile-template.ts";

const EXPIRY = "One of them can be used, once. Both expire.";
const IGNORE = "If you did not request this e-mail, ignore it.";

/** The default templates by their names at Supabase. Their colours are those of Studio. */
export const DEFAULT_TEMPLATES = {
  confirmation: {
    subject: "Confirm your e-mail address",
    text: `To confirm {{ .Email }} for your account at {{ .SiteURL }}, open this link:

{{ .ConfirmationURL }}

or enter this code: {{ .Token }}

${EXPIRY} ${IGNORE}
`,
    html: null,
  },
  invite: {
    subject: "You have been invited",
    text: `You have been invited to {{ .SiteURL }}. To accept the invitation, open this link:

{{ .ConfirmationURL }}

or enter this code: {{ .Token }}

${EXPIRY}
`,
    html: null,
  },
  invitation: {
    subject: "{{ .Inviter }} invites you to {{ .Project }}",
    text: `{{ .Inviter }} invites you to {{ .Project }}. To choose a password and sign in as {{ .Email }}, open this link within one day:

{{ .ConfirmationURL }}

The link can be used once. If you do not know who invites you, ignore this e-mail.
`,
    html: `<!doctype html>
<html lang="en">
<body style="font: 16px/1.5 system-ui, sans-serif; color: #1a202b; background: #ffffff; max-width: 34rem; margin: 2rem auto; padding: 0 1rem">
<h1 style="font-size: 20px">You are invited to {{ .Project }}</h1>
<p><strong>{{ .Inviter }}</strong> invites you to <strong>{{ .Project }}</strong>, where you sign in as {{ .Email }}.</p>
<p><a href="{{ .ConfirmationURL }}" style="display: inline-block; padding: 10px 16px; border-radius: 6px; background: #1f5fd6; color: #ffffff; text-decoration: none">Choose a password</a></p>
<p style="color: #566072">The link can be used once, within one day. If you do not know who invites you, ignore this e-mail.</p>
</body>
</html>
`,
  },
  magic_link: {
    subject: "Your sign-in link",
    text: `To sign in to {{ .SiteURL }}, open this link:

{{ .ConfirmationURL }}

or enter this code: {{ .Token }}

${EXPIRY} ${IGNORE}
`,
    html: null,
  },
  recovery: {
    subject: "Set a new password",
    text: `To set a new password for your account at {{ .SiteURL }}, open this link:

{{ .ConfirmationURL }}

or enter this code: {{ .Token }}

${EXPIRY} ${IGNORE}
`,
    html: null,
  },
  email_change: {
    subject: "Confirm the change of your e-mail address",
    text: `To change the e-mail address of your account at {{ .SiteURL }} to {{ .NewEmail }}, open this link:

{{ .ConfirmationURL }}

or enter this code: {{ .Token }}

${EXPIRY} ${IGNORE}
`,
    html: null,
  },
  reauthentication: {
    subject: "Your confirmation code",
    text: `To confirm that it is you, enter this code: {{ .Token }}

It can be used once, and expires. If you did not ask for it, somebody is signed in to your account: set a new password.
`,
    html: null,
  },
} satisfies Record<string, TemplateSource>;

export type MailName = keyof typeof DEFAULT_TEMPLATES;

export const MAIL_NAMES = Object.keys(DEFAULT_TEMPLATES) as MailName[];

export function isMailName(name: string): name is MailName {
  return MAIL_NAMES.some((known) => known === name);
}
