import { quotedName } from "../../quoted-name.ts";
import type { Facts } from "./facts.ts";
import type { Finding } from "./finding.ts";

/** What somebody who is away may keep of the log without being missed. */
const MUCH_RETAINED = 2 ** 30;
/** One for reading, one for a successor. */
const SLOTS_NEEDED = 2;

/** Slots, and who may make what where: the server rather than what it holds. */
export function serverFindings({ server, missingWatch }: Facts): Finding[] {
  return [
    ...(missingWatch === null ? [] : [watchFinding(missingWatch)]),
    ...server.openSchemas.map(openSchemaFinding),
    ...server.slots.flatMap(slotFindings),
    ...spareFindings(server.spareSlots),
  ];
}

function watchFinding(sql: string): Finding {
  return {
    kind: "advice",
    what: "Changes of the schema are noticed by looking every few seconds: no event trigger tells of them.",
    fix: `npm run migrate -- --watch-only, or as a superuser:\n\n${sql}`,
  };
}

/** Postgres before 15 made `public` so. */
function openSchemaFinding(schema: string): Finding {
  const name = quotedName(schema);
  return {
    kind: "danger",
    what: `Every role may make tables and functions in ${name}, which other people's names are looked up in.`,
    fix: `revoke create on schema ${name} from public;`,
  };
}

function slotFindings({ name, isActive, isLost, retainedBytes }: Facts["server"]["slots"][number]): Finding[] {
  if (isActive || (!isLost && retainedBytes < MUCH_RETAINED)) return [];
  const what = isLost
    ? `The slot ${name} has lost its part of the log, and serves nobody any more.`
    : `The slot ${name} keeps ${(retainedBytes / 2 ** 30).toFixed(1)} GB of the log, and nobody reads it.`;
  const fix = `select pg_drop_replication_slot('${name.replaceAll("'", "''")}');`;
  return [{ kind: isLost ? "advice" : "danger", what, fix }];
}

function spareFindings({ slots, senders }: Facts["server"]["spareSlots"]): Finding[] {
  const short = [
    { setting: "max_replication_slots", spare: slots },
    { setting: "max_wal_senders", spare: senders },
  ].filter(({ spare }) => spare < SLOTS_NEEDED);
  return short.map(({ setting, spare }) => ({
    kind: "advice",
    what: `Row changes may find no place: ${setting} leaves ${spare} free, and each gateway needs one.`,
    fix: `alter system set ${setting} = 20;  -- and restart Postgres`,
  }));
}
