import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { useFixture } from "../fixture.ts";
import { atMost, propertyRuns } from "../property-runs.ts";
import {
  accountOf,
  addCredentials,
  type Checked,
  type Credentials,
  create,
  PASSWORDS,
  post,
  prepare,
  workingFor,
} from "./account-addresses/holder.ts";
import { OTHER_ROUTES } from "./account-addresses/other-routes.ts";
import { listRoutes, listServed, SERVED, takenBy } from "./account-addresses/routes.ts";
import { isMailed, type Outcome, outcomeOfProof } from "./account-addresses/rules.ts";
import { newOwnAddress, openSite } from "./account-addresses/site.ts";
import { type Actor, claimedBy, csrfOf, newActor, take } from "./account-addresses/steps.ts";
import {
  type AddressKind,
  APPOINTMENTS,
  CHANGES,
  CLAIMS,
  ENDINGS,
  MOVES,
  PROOFS,
  STATES,
  type State,
  type Way,
} from "./account-addresses/ways.ts";

test("every route and mutation that may concern an address is a part of a way", async () => {
  const routes = await listRoutes(site);
  const taken = takenBy([...PROOFS, ...CLAIMS, ...MOVES, ...APPOINTMENTS, ...CHANGES, ...ENDINGS], routes);
  expect(routes.filter((route) => !taken.has(route))).toEqual([...OTHER_ROUTES].sort());
});

test("whatever the router serves has its routes in the list, or the reason why none of them concerns an address", async () => {
  expect(await listServed()).toEqual(Object.keys(SERVED).sort());
});

const site = useFixture(openSite);

type Cell = Way & { readonly way: Way; readonly state: State };

/**
 * Every way in every state; each cell is an address of its own. Unless all runs are made, this is so for the first way of each rule and
 * kind of address, and the others are taken in one state, each in the one after that of the way before.
 */
const cellsOf = (ways: readonly Way[]): Cell[] =>
  ways.flatMap((way, index) => {
    const first = ways.findIndex(({ rule, address }) => rule === way.rule && address === way.address);
    const turned = [...STATES.slice(index % STATES.length), ...STATES.slice(0, index % STATES.length)];
    const states = first === index ? STATES : atMost(propertyRuns(STATES.length), turned);
    return states.map((state) => ({ ...way, way, state }));
  });

/** Addresses that no message may have been sent to in the end, and the cells that they belong to. */
const silent = new Map<string, string>();

/** Takes a way to prove an address, and returns the owner's credentials then, and those of earlier ones that still work. */
async function prove(
  { way, state }: Pick<Cell, "way" | "state">,
  address: string,
  before: Credentials,
  signal: AbortSignal,
) {
  const actor = await newActor(site, way.address, address, signal);
  await take(site, way, actor, { isAnswered: isMailed(way, state) });
  return { outcome: await outcomeOf(way, state, address, { actor, before }), actor };
}

type Involved = { readonly actor: Actor; readonly before: Credentials };

async function outcomeOf(way: Way, state: State, address: string, { actor, before }: Involved): Promise<Outcome> {
  const all = Object.keys(before).sort().join();
  const working = await workingFor(site, way.address, address, before);
  return {
    isMailed: isMailed(way, state),
    before: all !== "" && all === working.join() ? "all" : working,
    ...(await ownedBy(way.address, address, actor)),
  };
}

/** Returns the credentials that sign the actor in to the account of the address, and the addresses that the tokens claim. */
async function ownedBy(kind: AddressKind, address: string, { session, values }: Actor) {
  const credentials: Checked = { ...session, password: values.new! };
  const working = await workingFor(site, kind, address, credentials);
  const claims = [
    ...(await claimedBy(site, kind, credentials)),
    ...(await claimedBy(site, kind, credentials.claimed ?? {})),
  ];
  const hasSession = working.some((name) => name !== "password");
  return {
    owner: [...(working.includes("password") ? ["password"] : []), ...(hasSession ? ["session"] : [])],
    claims: [...new Set(claims.map((claim) => (claim === address ? "the address" : claim)))],
  };
}

async function signIn(kind: AddressKind, address: string, password: string): Promise<Credentials> {
  if (kind === "phone") {
    const { json } = await post(site, "/auth/v1/token?grant_type=password", { phone: address, password });
    return { accessToken: json?.access_token, sessionToken: json?.refresh_token };
  }
  const { json } = await post(site, "/auth/login", { username: address, password });
  return { accessToken: json?.accessToken, refreshToken: json?.refreshToken };
}

/** Creates somebody with a confirmed account of another address. */
async function newNeighbour(kind: AddressKind, address: string, signal: AbortSignal): Promise<Actor> {
  const actor = await newActor(site, kind, address, signal);
  const email = `own-${randomUUID()}@example.org`;
  const id = await create(site, "email", email, { isConfirmed: true, password: PASSWORDS.stranger });
  const credentials = await addCredentials(site, id, PASSWORDS.stranger);
  Object.assign(actor.values, { me: id, own: email, csrf: csrfOf(credentials) });
  return { ...actor, own: { id, email, credentials } };
}

/** Returns the way to prove an address after something else has happened to it. */
const canonicalProof = (kind: AddressKind): Way =>
  PROOFS.find(({ name }) => name === (kind === "email" ? "sign-up, code" : "number, code"))!;

type Administered = { readonly way: Way; readonly state: State; readonly becomes: State };

/** An administrator does something to an account, whose address somebody proves afterwards. */
async function administer({ way, state, becomes }: Administered, signal: AbortSignal) {
  const address = newOwnAddress(way.address);
  const before = await prepare(site, way.address, address, state);
  const administrator = await newActor(site, way.address, address, signal);
  await take(site, way, administrator, { isAnswered: false });
  const canonical = canonicalProof(way.address);
  const { outcome, actor } = await prove({ way: canonical, state: becomes }, address, before, signal);
  return { outcome, transcript: [...administrator.transcript, ...actor.transcript].join("\n") };
}

describe("whoever proves an address is its only owner", () => {
  test.concurrent.for(cellsOf(PROOFS))("$interface: $name, $state before", async ({ way, state }, { signal }) => {
    const address = newOwnAddress(way.address);
    const before = await prepare(site, way.address, address, state);
    if (!isMailed(way, state)) silent.set(address, `${way.interface}: ${way.name}, ${state} before`);
    const { outcome, actor } = await prove({ way, state }, address, before, signal);
    expect(outcome, actor.transcript.join("\n")).toEqual(outcomeOfProof(way, state));
  });

  test("and nobody else gets a message", async () => {
    const mailed: string[] = [];
    for (const [address, cell] of silent) if ((await site.messagesTo(address)).length > 0) mailed.push(cell);
    expect(mailed).toEqual([]);
  });
});

describe("whoever enters an address without proof neither claims it in a token nor keeps the account", () => {
  test.concurrent.for(cellsOf(CLAIMS))("$interface: $name, $state before", async ({ way, state }, { signal }) => {
    const address = newOwnAddress(way.address, { isVouched: !way.steps[0]!.startsWith("OPENID") });
    const before = await prepare(site, way.address, address, state);
    const isNeighbour = way.steps[0]!.startsWith("@me");
    const stranger = await (isNeighbour ? newNeighbour : newActor.bind(null, site))(way.address, address, signal);
    await take(site, way, stranger, { isAnswered: isMailed(way, state) });
    const hasPassword = way.steps.some((step) => step.includes("{stranger}"));
    const signedIn = hasPassword ? await signIn(way.address, address, PASSWORDS.stranger) : {};
    const early = [stranger.session, signedIn, stranger.own?.credentials ?? {}];
    const claims = (await Promise.all(early.map((each) => claimedBy(site, way.address, each)))).flat();
    const foreign = claims.filter((claim) => claim !== stranger.own?.email);

    const canonical = canonicalProof(way.address);
    const { outcome, actor } = await prove({ way: canonical, state }, address, before, signal);
    const kept = {
      ...(hasPassword && { password: PASSWORDS.stranger }),
      ...stranger.session,
      ...stranger.own?.credentials,
    };
    const left = await workingFor(site, way.address, address, kept);
    const transcript = [...stranger.transcript, ...actor.transcript].join("\n");
    const expected = { stranger: [], claims: [], ...{ outcome: outcomeOfProof(canonical, state) } };
    expect({ stranger: left, claims: foreign, outcome }, transcript).toEqual(expected);
  });
});

describe("whoever moves to an address and proves it takes it only if nobody has it", () => {
  test.concurrent.for(cellsOf(MOVES))("$interface: $name, $state before", async ({ way, state }, { signal }) => {
    const address = newOwnAddress("email");
    const before = await prepare(site, "email", address, state);
    const owner = await newNeighbour("email", address, signal);
    await take(site, way, owner, { isAnswered: isMailed(way, state) });
    const isAnonymous = !owner.transcript.some((line) => line.startsWith("@me") || line.startsWith("@admin"));
    const credentials = isAnonymous ? owner.session : { accessToken: owner.own!.credentials.accessToken! };
    const account = await accountOf(site, "email", address);
    const moved = (await workingFor(site, "email", address, credentials)).length > 0;
    const working = await workingFor(site, "email", address, before);
    const outcome = { moved, before: working.length > 0, exists: account !== null };
    const isHeld = state === "unconfirmed" || state === "confirmed";
    expect(outcome, owner.transcript.join("\n")).toEqual({ moved: state === "none", before: isHeld, exists: true });
  });
});

describe("an administrator", () => {
  test.concurrent.for(cellsOf(APPOINTMENTS))(
    "vouches for an address: $name, $state before",
    async ({ way, state }, { signal }) => {
      const address = newOwnAddress(way.address);
      const before = await prepare(site, way.address, address, state);
      const { outcome, actor } = await prove({ way, state }, address, before, signal);
      expect(outcome, actor.transcript.join("\n")).toEqual(outcomeOfProof(way, state));
    },
  );

  test.concurrent.for(cellsOf(CHANGES))(
    "changes an account, and proves nothing: $name, $state before",
    async ({ way, state }, { signal }) => {
      const canonical = canonicalProof(way.address);
      const changed = way.rule === "unban" && state === "banned" ? "confirmed" : state;
      const { outcome, transcript } = await administer({ way, state, becomes: changed }, signal);
      // A new password of a proved account ends its sign-ins, and is that which holds.
      const isReset = way.rule === "password" && state === "confirmed";
      const reset = { owner: ["password"], before: ["apiKey", "identity", "passkey"], claims: ["the address"] };
      expect(outcome, transcript).toEqual({ ...outcomeOfProof(canonical, changed), ...(isReset && reset) });
    },
  );

  test.concurrent.for(cellsOf(ENDINGS))(
    "ends an account: $interface $name, $state before",
    async ({ way, state }, { signal }) => {
      const canonical = canonicalProof(way.address);
      const hasAccount = !["none", "row"].includes(state) || (state === "row" && way.address === "phone");
      const ended = way.rule === "ban" && hasAccount ? "banned" : "none";
      const { outcome, transcript } = await administer({ way, state, becomes: ended }, signal);
      expect(outcome, transcript).toEqual(outcomeOfProof(canonical, ended));
    },
  );
});
