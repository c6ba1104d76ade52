import pg from "pg";
import { withClient } from "./with-client.ts";

type Urls = { readonly requestUrl: string; readonly ownerUrl: string };
/** The cluster is null where the server does not tell it. */
type Identity = { readonly name: string; readonly cluster: string | null };

/** Requests would be answered from one database by what is known of another. */
export async function refuseTwoDatabases({ requestUrl, ownerUrl }: Urls): Promise<void> {
  if (requestUrl === ownerUrl) return;
  const [ofRequests, ofOwner] = await Promise.all([identityOf(requestUrl), identityOf(ownerUrl)]);
  const isKnown = ofRequests.cluster !== null && ofOwner.cluster !== null;
  const isOneServer = !isKnown || ofRequests.cluster === ofOwner.cluster;
  if (isOneServer && ofRequests.name === ofOwner.name) return;
  const where = isOneServer ? "of one server" : "of two servers";
  throw new Error(
    `DATABASE_URL and OWNER_DATABASE_URL name two databases ${where}, "${ofRequests.name}" and "${ofOwner.name}". ` +
      "Set both to the same one: the first as the login of requests, the second as the owner.",
  );
}

/** A pooler may call it otherwise; a standby has its primary's. */
function identityOf(url: string): Promise<Identity> {
  return withClient(url, async (client) => {
    const { rows } = await client.query<{ name: string }>("select current_database() as name");
    return { name: rows[0]!.name, cluster: await clusterOf(client) };
  });
}

async function clusterOf(client: pg.ClientBase): Promise<string | null> {
  try {
    const { rows } = await client.query<{ id: string }>(
      "select system_identifier::text as id from pg_control_system()",
    );
    return rows[0]!.id;
  } catch (error) {
    // Not every provider lets everybody ask.
    if (error instanceof pg.DatabaseError) return null;
    throw error;
  }
}
