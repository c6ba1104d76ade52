/** The states of the address before. A stranger holds the unconfirmed account, its owner the confirmed and the banned one. */
export const STATES = ["none", "row", "unconfirmed", "confirmed", "banned"] as const;
export type State = (typeof STATES)[number];

export type AddressKind = "email" | "phone";

/** A way to create, prove, change or end an address; `rule` says which expectation it has. */
export type Way = {
  readonly interface: string;
  readonly name: string;
  readonly rule: string;
  readonly address: AddressKind;
  readonly steps: readonly string[];
};

/**
 * Steps are separated by `>`. `MAIL` waits for the message to the address, `FORM` sends a form of a page, `OPENID` and `SAML` sign the
 * owner of the address in at a provider, `@admin` and `@me` act with the token of an administrator or of the account that the actor has
 * already (`{own}` is its address), and `@session` with the last sign-in. `{v}` is the address.
 */
export const PROOFS = readWays(`
/auth
register, link           | signUp     | POST /auth/register {"name": "N", "email": "{v}", "password": "{new}"} > MAIL > POST /auth/verify-email {"token": "{token}"}
register, code           | resentElsewhere | POST /auth/register {"name": "N", "email": "{v}", "password": "{new}"} > POST /auth/v1/resend {"type": "signup", "email": "{v}"} > MAIL 6 > POST /auth/v1/verify {"type": "signup", "email": "{v}", "token": "{code}"}
resend, link             | signUp     | POST /auth/register {"name": "N", "email": "{v}", "password": "{new}"} > @session POST /auth/resend-verification {} > MAIL > POST /auth/verify-email {"token": "{token}"}
reset                    | reset      | POST /auth/forgot-password {"email": "{v}"} > MAIL > POST /auth/reset-password {"token": "{token}", "password": "{new}"}

pages
sign-up, link            | signUp     | FORM /auth/sign-up name=N&email={v}&password={new} > MAIL > FORM /auth/confirm-address token={token}
reset                    | reset      | FORM /auth/forgotten-password email={v} > MAIL > FORM /auth/new-password token={token}&password={new}

/auth/v1
sign-up, code            | signUp     | POST /auth/v1/signup {"email": "{v}", "password": "{new}"} > MAIL > POST /auth/v1/verify {"type": "signup", "email": "{v}", "token": "{code}"}
sign-up, code as e-mail  | signUp     | POST /auth/v1/signup {"email": "{v}", "password": "{new}"} > MAIL > POST /auth/v1/verify {"type": "email", "email": "{v}", "token": "{code}"}
sign-up, hash            | signUp     | POST /auth/v1/signup {"email": "{v}", "password": "{new}"} > MAIL > POST /auth/v1/verify {"type": "signup", "token_hash": "{token}"}
sign-up, link            | signUp     | POST /auth/v1/signup {"email": "{v}", "password": "{new}"} > MAIL > GET {link}
sign-up, link, PKCE      | signUp     | POST /auth/v1/signup {"email": "{v}", "password": "{new}", "code_challenge": "{verifier}", "code_challenge_method": "plain"} > MAIL > GET {link} > POST /auth/v1/token?grant_type=pkce {"auth_code": "{auth_code}", "code_verifier": "{verifier}"}
sign-up, resent code     | resent     | POST /auth/v1/signup {"email": "{v}", "password": "{new}"} > MAIL > POST /auth/v1/resend {"type": "signup", "email": "{v}"} > MAIL > POST /auth/v1/verify {"type": "signup", "email": "{v}", "token": "{code}"}
one-time code            | signIn     | POST /auth/v1/otp {"email": "{v}"} > MAIL > POST /auth/v1/verify {"type": "email", "email": "{v}", "token": "{code}"}
one-time code as sign-up | signIn     | POST /auth/v1/otp {"email": "{v}"} > MAIL > POST /auth/v1/verify {"type": "signup", "email": "{v}", "token": "{code}"}
magic link               | signIn     | POST /auth/v1/magiclink {"email": "{v}"} > MAIL > GET {link}
magic link, PKCE         | signIn     | POST /auth/v1/otp {"email": "{v}", "code_challenge": "{verifier}", "code_challenge_method": "plain"} > MAIL > GET {link} > POST /auth/v1/token?grant_type=pkce {"auth_code": "{auth_code}", "code_verifier": "{verifier}"}
recovery, code           | recovery   | POST /auth/v1/recover {"email": "{v}"} > MAIL > POST /auth/v1/verify {"type": "recovery", "email": "{v}", "token": "{code}"} > @session PUT /auth/v1/user {"password": "{new}"}
recovery, link           | recovery   | POST /auth/v1/recover {"email": "{v}"} > MAIL > GET {link} > @session PUT /auth/v1/user {"password": "{new}"}
invitation               | invitation | @admin POST /auth/v1/invite {"email": "{v}"} > MAIL > POST /auth/v1/verify {"type": "invite", "email": "{v}", "token": "{code}"} > @session PUT /auth/v1/user {"password": "{new}"}
invitation, page         | invitation | @admin POST /admin/v1/invitations {"email": "{v}", "role": "authenticated"} > MAIL > FORM /auth/invitation token={token}&password={new}
link of a sign-up        | newLink    | @admin POST /auth/v1/admin/generate_link {"type": "signup", "email": "{v}", "password": "{new}"} > POST /auth/v1/verify {"type": "signup", "token_hash": "{hashed_token}"}
link of an invitation    | newLink    | @admin POST /auth/v1/admin/generate_link {"type": "invite", "email": "{v}"} > POST /auth/v1/verify {"type": "invite", "token_hash": "{hashed_token}"} > @session PUT /auth/v1/user {"password": "{new}"}
generated magic link     | ownSignIn  | @admin POST /auth/v1/admin/generate_link {"type": "magiclink", "email": "{v}"} > POST /auth/v1/verify {"type": "magiclink", "token_hash": "{hashed_token}"}
generated recovery       | ownLink    | @admin POST /auth/v1/admin/generate_link {"type": "recovery", "email": "{v}"} > POST /auth/v1/verify {"type": "recovery", "token_hash": "{hashed_token}"} > @session PUT /auth/v1/user {"password": "{new}"}
number, code             | signUp     | POST /auth/v1/signup {"phone": "{v}", "password": "{new}"} > MAIL > POST /auth/v1/verify {"type": "sms", "phone": "{v}", "token": "{code}"}
number, resent code      | resent     | POST /auth/v1/signup {"phone": "{v}", "password": "{new}"} > MAIL > POST /auth/v1/resend {"type": "sms", "phone": "{v}"} > MAIL > POST /auth/v1/verify {"type": "sms", "phone": "{v}", "token": "{code}"}
number, one-time code    | signIn     | POST /auth/v1/otp {"phone": "{v}"} > MAIL > POST /auth/v1/verify {"type": "sms", "phone": "{v}", "token": "{code}"}

providers
session                  | vouched    | OPENID /auth/providers/example/sign-in
token                    | vouched    | OPENID /auth/providers/example/sign-in?mode=token&redirect_to=/health > POST /auth/providers/exchange {"code": "{auth_code}"}
SAML                     | vouched    | SAML /auth/providers/office/sign-in
/auth/v1                 | vouched    | OPENID /auth/v1/authorize?provider=example
/auth/v1, PKCE           | vouched    | OPENID /auth/v1/authorize?provider=example&code_challenge={verifier}&code_challenge_method=plain > POST /auth/v1/token?grant_type=pkce {"auth_code": "{auth_code}", "code_verifier": "{verifier}"}
/auth/v1, ID token       | vouched    | POST /auth/v1/token?grant_type=id_token {"provider": "forge", "id_token": "{idToken}"}
`);

/** Ways in which a stranger without access to the mailbox enters the address, or adds it to the stranger's own account. */
export const CLAIMS = readWays(`
/auth
register                 | signUp | POST /auth/register {"name": "N", "email": "{v}", "password": "{stranger}"} > MAIL

pages
sign-up                  | signUp | FORM /auth/sign-up name=N&email={v}&password={stranger} > MAIL
change of address        | begin  | @me FORM /auth/account/address csrf={csrf}&email={v}&password={stranger} > MAIL

/auth/v1
sign-up                  | signUp | POST /auth/v1/signup {"email": "{v}", "password": "{stranger}"} > MAIL
one-time code            | signIn | POST /auth/v1/otp {"email": "{v}"} > MAIL
magic link               | signIn | POST /auth/v1/magiclink {"email": "{v}"} > MAIL
anonymous account        | beginByCode | POST /auth/v1/signup {} > @session PUT /auth/v1/user {"email": "{v}"} > MAIL
change of address        | beginByCode | @me PUT /auth/v1/user {"email": "{v}"} > MAIL
number                   | signUp | POST /auth/v1/signup {"phone": "{v}", "password": "{stranger}"} > MAIL
one-time code to number  | none   | POST /auth/v1/otp {}
change of number         | none   | @me PUT /auth/v1/user {}

/users
create                   | none   | POST /users {"name": "N", "email": "{v}"}
create, signed in        | none   | @me POST /users {"name": "N", "email": "{v}"}
change                   | none   | @me PATCH /users/{me} {"email": "{v}"}
replace                  | none   | @me PUT /users/{me} {"name": "N", "email": "{v}"}

/api/v1
create                   | none   | POST /api/v1/users {"name": "N", "email": "{v}"}
create by version 2      | none   | POST /api/v2/users [{"name": "N", "email": "{v}"}]
change                   | none   | @me PATCH /api/v1/users/{me} {"email": "{v}"}
change by version 2      | none   | @me PATCH /api/v2/users/{me} {"email": "{v}"}
replace                  | none   | @me PUT /api/v1/users/{me} {"name": "N", "email": "{v}"}

/rest/v1
create                   | none   | POST /rest/v1/users {"name": "N", "email": "{v}"}
create, signed in        | none   | @me POST /rest/v1/users {"name": "N", "email": "{v}"}
create by function       | none   | POST /rest/v1/rpc/create_user {"name": "N", "email": "{v}"}
change                   | none   | @me PATCH /rest/v1/users?id=eq.{me} {"email": "{v}"}
replace                  | none   | @me PUT /rest/v1/users?id=eq.{me} {"id": {me}, "name": "N", "email": "{v}"}

GraphQL
create                   | none   | POST /graphql {"query": "mutation { createUser(input: {name: \\"N\\", email: \\"{v}\\"}) { id } }"}
create, signed in        | none   | @me POST /graphql {"query": "mutation { createUser(input: {name: \\"N\\", email: \\"{v}\\"}) { id } }"}

providers
unverified, session      | none   | OPENID /auth/providers/example/sign-in
unverified, /auth/v1     | none   | OPENID /auth/v1/authorize?provider=example
unverified ID token      | none   | POST /auth/v1/token?grant_type=id_token {"provider": "forge", "id_token": "{unverifiedToken}"}
linked to an account     | none   | @me POST /auth/v1/token?grant_type=id_token {"provider": "forge", "id_token": "{unverifiedToken}", "link_identity": true}
`);

/** The owner of another confirmed account moves to the address, and proves it. */
export const MOVES = readWays(`
pages
change of address        | move | @me FORM /auth/account/address csrf={csrf}&email={v}&password={stranger} > MAIL > FORM /auth/change-address token={token}

/auth/v1
change of address        | moveByCode | @me PUT /auth/v1/user {"email": "{v}"} > MAIL > GET {link} > MAIL OWN > GET {link}
repeated change          | moveByCode | @me PUT /auth/v1/user {"email": "{v}"} > MAIL > POST /auth/v1/resend {"type": "email_change", "email": "{own}"} > MAIL > POST /auth/v1/verify {"type": "email_change", "email": "{v}", "token": "{code}"} > MAIL OWN > POST /auth/v1/verify {"type": "email_change", "email": "{own}", "token": "{code}"}
anonymous account        | moveByCode | POST /auth/v1/signup {} > @session PUT /auth/v1/user {"email": "{v}"} > MAIL > POST /auth/v1/verify {"type": "email_change", "email": "{v}", "token": "{code}"}
generated change         | move | @admin POST /auth/v1/admin/generate_link {"type": "email_change_new", "email": "{own}", "new_email": "{v}"} > POST /auth/v1/verify {"type": "email_change", "token_hash": "{hashed_token}"} > @admin POST /auth/v1/admin/generate_link {"type": "email_change_current", "email": "{own}", "new_email": "{v}"} > POST /auth/v1/verify {"type": "email_change", "token_hash": "{hashed_token}"}
`);

/** Ways in which an administrator vouches for an address, and sets a password. */
export const APPOINTMENTS = readWays(`
administration
create                   | appoint   | @admin POST /auth/v1/admin/users {"email": "{v}", "password": "{new}", "email_confirm": true}
change                   | reappoint | @admin PUT /auth/v1/admin/users/{uuid} {"email_confirm": true, "password": "{new}"}
confirm                  | vouch     | @admin PUT /auth/v1/admin/users/{uuid} {"email_confirm": true}
confirm a number         | vouchNumber | @admin PUT /auth/v1/admin/users/{uuid} {"phone_confirm": true}
create with a number     | appointNumber | @admin POST /auth/v1/admin/users {"phone": "{v}", "password": "{new}", "phone_confirm": true}
change with a number     | reappointNumber | @admin PUT /auth/v1/admin/users/{uuid} {"phone_confirm": true, "password": "{new}"}
`);

/** Ways to end an account: nothing of it is left, whatever its state was, and the address is free. */
export const ENDINGS = readWays(`
/users
delete                   | end  | @admin DELETE /users/{id}

/api/v1
delete                   | end  | @admin DELETE /api/v1/users/{id}
delete by version 2      | end  | @admin DELETE /api/v2/users/{id}

/rest/v1
delete                   | end  | @admin DELETE /rest/v1/users?id=eq.{id}

administration
delete                   | end  | @admin DELETE /auth/v1/admin/users/{uuid} {}
delete, keep the row     | hide | @admin DELETE /auth/v1/admin/users/{uuid} {"should_soft_delete": true}
ban                      | ban  | @admin PUT /auth/v1/admin/users/{uuid} {"ban_duration": "24h"}
delete with a number     | end  | @admin DELETE /auth/v1/admin/users/{uuid} {}
ban with a number        | ban  | @admin PUT /auth/v1/admin/users/{uuid} {"ban_duration": "24h"}
`);

/** Changes of an account by an administrator that do not mention the address: they prove nothing. */
export const CHANGES = readWays(`
administration
set a password               | password | @admin PUT /auth/v1/admin/users/{uuid} {"password": "{new}"}
set a password with a number | password | @admin PUT /auth/v1/admin/users/{uuid} {"password": "{new}"}
lift a ban                   | unban    | @admin PUT /auth/v1/admin/users/{uuid} {"ban_duration": "none"}
lift a ban of a number       | unban    | @admin PUT /auth/v1/admin/users/{uuid} {"ban_duration": "none"}
`);

function readWays(text: string): Way[] {
  return text
    .trim()
    .split("\n\n")
    .flatMap((block) => {
      const [heading = "", ...lines] = block.split("\n");
      return lines.map((line) => readWay(heading, line));
    });
}

function readWay(heading: string, line: string): Way {
  const [name = "", rule = "", steps = ""] = line.split(" | ").map((cell) => cell.trim());
  const address = /"phone|number/.test(`${steps} ${name}`) ? "phone" : "email";
  return { interface: heading, name, rule, address, steps: steps.split(" > ") };
}
