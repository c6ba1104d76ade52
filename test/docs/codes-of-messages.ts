/** A reader copies these values from an e-mail or an app; they have an assignment with an example on the page. */
const COPIED = /^(LINK_TOKEN|MAIL_CODE|APP_CODE)=.*$/gm;

const TOTP = 'import("otplib").then(async ({ generate }) => console.log(await generate({ secret: process.argv[1] })))';

/** The commands, with the values of the latest e-mail in the folder and of the app with the secret in `$ENABLED`. */
export function withCodes(commands: string, mails: string): string {
  const fromMail = (name: string, pattern: string) =>
    `for _ in {1..300}; do ${name}=$(ls -t ${mails}/*.eml 2>/dev/null | head -1 | xargs -r cat | sed -nE 's/.*${pattern}.*/\\1/p' || true); ` +
    `[ "$${name}" ] && [ "$${name}" != "$LAST" ] && break; sleep 0.1; done; LAST=$${name}`;
  return commands.replaceAll(COPIED, (_line, name: string) => {
    if (name === "LINK_TOKEN") return fromMail(name, "[?]token=([A-Za-z0-9_-]+)");
    if (name === "MAIL_CODE") return fromMail(name, "code: ([0-9]{6})");
    return `APP_CODE=$(node -e '${TOTP}' "$(echo "$ENABLED" | sed 's/.*"secret":"\\([^"]*\\)".*/\\1/')")`;
  });
}
