import { randomUUID } from "node:crypto";
import { type AsOwner, inOwnerTransaction } from "#postgres/database";
import { shortenText } from "#runtime";
import type { CountMessage, NewUser } from "./code-emails.ts";
import type { ClientInfo } from "./identity/client-info.ts";
import type { OpenSignIn } from "./login.ts";
import type { MessageQueue } from "./mail/email-queue.ts";
import type { TextMessage } from "./mail/text-message-gateway.ts";
import type { OneTimeCodes, SignUp } from "./one-time-codes.ts";
import type { Registration } from "./registration.ts";

/** Accounts with a phone number. A number consists of digits, without the plus sign. */
export type PhoneAccounts = {
  /** Sends a code to sign in, after the response. With `newUser`, it creates the account if there is none. */
  requestSignIn(phone: string, newUser: NewUser | null, clientInfo: ClientInfo): Promise<void>;
  /** Sends a code that confirms the sign-up with its password, after the response. */
  requestConfirmation(phone: string, signUp: SignUp): Promise<void>;
  /** Sends a code of the kind that was sent last, after the response. */
  repeatCode(phone: string): Promise<void>;
  /** `opened` is null if the number has an account. */
  create<T>(account: NewPhoneAccount, clientInfo: ClientInfo, open: OpenSignIn<T>): Promise<PhoneSignUpResult<T>>;
  /** Returns the user name to sign in with; a name that no account has if no account has the number. */
  usernameOf(phone: string): Promise<string>;
};

type NewPhoneAccount = {
  readonly phone: string;
  readonly password: string | null;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly isConfirmed: boolean;
};

type PhoneSignUpResult<T> = { readonly signUp: SignUp; readonly opened: T | null };

type PhoneAccountsOptions = {
  readonly asOwner: AsOwner;
  readonly codes: OneTimeCodes;
  readonly signUp: Registration["signUp"];
  readonly queue: MessageQueue<TextMessage>;
  readonly count: CountMessage;
};

type PhoneRecipient = {
  readonly user_id: string | null;
  readonly state: "absent" | "disabled" | "found";
  readonly purpose: PhonePurpose;
  readonly user_json: { readonly phone_confirmed_at?: string } | null;
};

/** `sms` signs in, which removes the password of an account whose number was never confirmed; `sms_signup` confirms a sign-up. */
type PhonePurpose = "sms" | "sms_signup";

/** A domain without mail (RFC 6761): each row of users has an address, even for an account with a phone number only. */
const PHONE_DOMAIN = "phone.invalid";
const MAX_NAME_LENGTH = 200;

const FIND_RECIPIENT = "select * from auth.phone_recipient($1, $2)";
const FIND_USERNAME = "select username from auth.users where phone = $1";
const SET_PHONE = "select auth.set_phone($1, $2, $3)";

function nameOf({ name }: NewUser["metadata"]): string {
  return shortenText(typeof name === "string" && name.trim() !== "" ? name : "User", MAX_NAME_LENGTH);
}

export function makePhoneAccounts(options: PhoneAccountsOptions): PhoneAccounts {
  const { asOwner, codes, queue, count } = options;

  const create: PhoneAccounts["create"] = async (account, clientInfo, open) => {
    const { phone, password, metadata, isConfirmed } = account;
    const user = {
      name: nameOf(metadata),
      email: `${randomUUID()}@${PHONE_DOMAIN}`,
      password,
      metadata,
    };
    const { signUp, registered } = await options.signUp(user, clientInfo, async (client, userId, ...signIn) => {
      await client.query(SET_PHONE, [userId, phone, isConfirmed]);
      return open(client, userId, ...signIn);
    });
    return { signUp, opened: registered?.opened ?? null };
  };

  const prepareCode = (
    phone: string,
    requested: PhonePurpose | null,
    signUp: SignUp | null = null,
  ): Promise<TextMessage | null> =>
    inOwnerTransaction(asOwner, async (client) => {
      const { rows } = await client.query<PhoneRecipient>(FIND_RECIPIENT, [phone, requested]);
      const { state, purpose, user_id: userId, user_json: user } = rows[0]!;
      if (state !== "found") return null;
      // A sign-up with a confirmed number has nothing to confirm.
      if (requested === "sms_signup" && user!.phone_confirmed_at !== undefined) return null;
      const { code } = await codes.add(client, {
        ...{ purpose, userId: userId!, to: phone },
        signUp: purpose === requested ? signUp : null,
      });
      return { phone, code, user: user! };
    });

  const request = async (phone: string, prepare: () => Promise<TextMessage | null>): Promise<void> => {
    await count("sms", phone);
    queue.add(prepare);
  };

  return {
    create,
    requestSignIn: (phone, newUser, clientInfo) =>
      request(phone, async () => {
        const signUp = newUser && { name: nameOf(newUser.metadata), passwordHash: null, metadata: newUser.metadata };
        const message = await prepareCode(phone, "sms", signUp);
        if (message || !newUser) return message;
        const account = { phone, password: null, metadata: newUser.metadata, isConfirmed: false };
        await create(account, clientInfo, async () => {});
        return prepareCode(phone, "sms", signUp);
      }),
    requestConfirmation: (phone, signUp) => request(phone, () => prepareCode(phone, "sms_signup", signUp)),
    repeatCode: (phone) => request(phone, () => prepareCode(phone, null)),
    async usernameOf(phone) {
      const { rows } = await asOwner((client) => client.query<{ username: string }>(FIND_USERNAME, [phone]));
      return rows[0]?.username ?? `${phone}@${PHONE_DOMAIN}`;
    },
  };
}
