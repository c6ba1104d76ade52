import { randomUUID } from "node:crypto";
import { type CodeRequest, type NewAccount, type Registration, readUserJson } from "#accounts";
import { clientInfoOf, type GatewayResponse, jsonResponse } from "#http";
import { shortenText } from "#runtime";
import type { JsonObject } from "#runtime/json";
import {
  type AuthRequest,
  type AuthRouteHandler,
  type AuthV1Services,
  readJsonBody,
  readObject,
  readText,
} from "./auth-v1-request.ts";
import { readCodeRequest, readPhone, requireCodeEmails, requirePhones } from "./code-request.ts";
import { authError, validationFailed } from "./errors.ts";
import { toSessionJson } from "./session-json.ts";

/** Creates accounts: with an e-mail address and a password, or anonymous ones without both. */
export function signUpHandler(services: AuthV1Services): AuthRouteHandler {
  const { config, limitExpensive } = services;
  const signUpAnonymously = anonymousSignUp(services);
  const signUpByEmail = emailSignUp(services);
  const signUpByPhone = phoneSignUp(services);
  return async (request) => {
    const body = await readJsonBody(request);
    const [email, phone, password] = [readText(body, "email"), readText(body, "phone"), readText(body, "password")];
    if (!config.signUps) throw authError(422, "signup_disabled", "Signups not allowed for this instance");
    const data = readObject(body, "data") ?? {};
    if (email === "" && phone === "" && password === "") {
      if (!config.anonymousSignIns) {
        throw authError(422, "anonymous_provider_disabled", "Anonymous sign-ins are disabled");
      }
      await limitExpensive(request);
      return signUpAnonymously(request, data);
    }
    if (password === "") throw validationFailed("Signup requires a valid password");
    if (email !== "" && phone !== "") {
      throw validationFailed("Only an email address or phone number should be provided on signup.");
    }
    if (phone !== "")
      return signUpByPhone(request, { phone: readPhone(body), channel: readText(body, "channel"), password, data });
    if (email === "") throw validationFailed("To signup, please provide your email");
    await limitExpensive(request);
    return signUpByEmail(request, {
      email: email.toLowerCase(),
      password,
      data,
      codeRequest: readCodeRequest(services, request, body),
    });
  };
}

/** A domain without mail (RFC 6761): each row of a table of users has an address, including those of anonymous accounts. */
const ANONYMOUS_DOMAIN = "anonymous.invalid";

function anonymousSignUp({ accounts }: AuthV1Services) {
  const { openAnonymous } = accounts.authSessions;
  return async (request: AuthRequest, data: JsonObject): Promise<GatewayResponse> => {
    const email = `${randomUUID()}@${ANONYMOUS_DOMAIN}`;
    const account = { name: "Anonymous", email, password: null, metadata: data, isAnonymous: true };
    const { opened } = await accounts.createAccount(account, clientInfoOf(request), openAnonymous);
    return jsonResponse(200, toSessionJson(opened));
  };
}

type EmailSignUp = {
  readonly email: string;
  readonly password: string;
  readonly data: JsonObject;
  readonly codeRequest: CodeRequest;
};

function emailSignUp(services: AuthV1Services) {
  const { accounts, config } = services;
  const { open } = accounts.authSessions;

  return async (request: AuthRequest, signUp: EmailSignUp): Promise<GatewayResponse> => {
    const { email, data, codeRequest } = signUp;
    const account = await chooseName(accounts.findRegistrationFaults, signUp);
    if (config.autoConfirm) {
      const { registered } = await accounts.signUp(account, clientInfoOf(request), open);
      if (!registered) throw authError(422, "user_already_exists", "User already registered");
      return jsonResponse(200, toSessionJson(registered.opened));
    }
    const codeEmails = requireCodeEmails(accounts);
    const { signUp: proved, registered } = await accounts.signUp(account, clientInfoOf(request), readUserJson);
    await codeEmails.requestConfirmation(email, codeRequest, proved);
    return jsonResponse(200, {
      ...(registered?.opened ?? (await accounts.own.imaginaryJson({ email, phone: "" }, data))),
      confirmation_sent_at: new Date().toISOString(),
    });
  };
}

type PhoneSignUp = {
  readonly phone: string;
  readonly channel: string;
  readonly password: string;
  readonly data: JsonObject;
};

function phoneSignUp({ accounts, config, limitExpensive }: AuthV1Services) {
  const { open } = accounts.authSessions;
  return async (request: AuthRequest, { phone, channel, password, data }: PhoneSignUp): Promise<GatewayResponse> => {
    const phones = requirePhones(accounts, channel);
    await limitExpensive(request);
    const account = { phone, password, metadata: data, isConfirmed: config.autoConfirm };
    if (config.autoConfirm) {
      const { opened } = await phones.create(account, clientInfoOf(request), open);
      if (!opened) throw authError(422, "user_already_exists", "User already registered");
      return jsonResponse(200, toSessionJson(opened));
    }
    const { signUp, opened } = await phones.create(account, clientInfoOf(request), readUserJson);
    await phones.requestConfirmation(phone, signUp);
    return jsonResponse(200, opened ?? (await accounts.own.imaginaryJson({ email: "", phone }, data)));
  };
}

const MAX_NAME_LENGTH = 200;

/** Returns the name in the metadata, if it is acceptable, or else the part of the address before the @. */
async function chooseName(
  findFaults: Registration["findRegistrationFaults"],
  { email, password, data }: EmailSignUp,
): Promise<NewAccount> {
  const [localPart = email] = email.split("@");
  const chosen = [data.name, data.full_name].find((name) => typeof name === "string" && name.trim() !== "");
  const account = { name: shortenText(String(chosen ?? localPart), MAX_NAME_LENGTH), email, password, metadata: data };
  const faults = await findFaults({ name: account.name, email });
  if (faults.some(({ field }) => field === "email")) {
    throw validationFailed("Unable to validate email address: invalid format");
  }
  return faults.length === 0 ? account : { ...account, name: localPart };
}
