import type { IncomingMessage } from "node:http";
import { type GraphqlInterface, openGraphql, type ReplaceStages } from "#graphql";
import { makeCsrfProtection } from "#http";
import type { ServiceCounters } from "#http/observability";
import type { makeClientConnectionReader, RateLimits } from "#http/serving";
import { SocketMemory } from "#http/sockets";
import { LiveQueries, openShapes } from "#live";
import { openReplication, REALTIME_PUBLICATION, type ReplicationStream } from "#live/stream";
import { openRealtime, type Realtime } from "#realtime";
import type { ServiceCore } from "./shared-services.ts";
import type { SignInServices } from "./sign-in-services.ts";

export type StreamingInterfaces = {
  readonly graphql: GraphqlInterface;
  readonly changes: ReplicationStream;
  readonly realtime: Realtime;
  readonly live: LiveQueries;
  readonly shapes: ReturnType<typeof openShapes>;
  readonly socketMemory: SocketMemory;
};

type StreamingState = {
  readonly identification: SignInServices;
  readonly counts: ServiceCounters;
  readonly readConnection: ReturnType<typeof makeClientConnectionReader>;
};

type StreamingOptions = {
  readonly schemaWaitMs?: number;
  readonly onGraphqlLoad?: () => void;
  readonly graphqlStages?: ReplaceStages;
};

/** Opens GraphQL and Realtime, and the replication stream that row changes come from. */
export async function openStreamingInterfaces(
  { postgres, config, database, asOwner, catalog, listener, supervisor, tracing, peers, log }: ServiceCore,
  state: StreamingState,
  { limitCreatedUsers }: RateLimits,
  { schemaWaitMs, onGraphqlLoad: onLoad, graphqlStages: replaceStages }: StreamingOptions,
  opened: AsyncDisposableStack,
): Promise<StreamingInterfaces> {
  const authenticator = () => state.identification.authenticator;
  const clientAddress = (request: IncomingMessage) => state.readConnection(request).address;
  const memory = new SocketMemory(config);
  const [keep, publication] = [config.realtimeSlot, REALTIME_PUBLICATION];
  const changes = openReplication({ url: postgres.directUrl, asOwner, publication, keep, supervisor, log });
  opened.defer(() => changes.close());
  const reloadDefinitions = () => catalog.reload();
  const live = new LiveQueries({ asOwner, database, changes, publication, reloadDefinitions, log });
  opened.defer(() => live.endAll());
  // The stream lacks some changes of permissions: members of roles, and all of them if there are no event triggers.
  opened.defer(catalog.onDifference(() => live.reviewDefinitions()));
  const shapes = openShapes(live, config, { supervisor, log });
  opened.defer(() => shapes.close());

  const graphql = await openGraphql({
    config,
    authenticator,
    catalog,
    database,
    listener,
    live,
    loginRole: postgres.loginRole,
    clientAddress,
    limitCreatedUsers,
    log,
    counts: state.counts,
    tracing,
    ...{ schemaWaitMs, onLoad, replaceStages },
    memory,
    supervisor,
  });
  opened.defer(() => graphql.close());

  const realtime = openRealtime({
    config,
    authenticator,
    csrf: makeCsrfProtection(config),
    clientAddress,
    catalog,
    database,
    changes,
    publication,
    memory,
    peers,
    supervisor,
    recorder: state.counts.recorder,
    log,
  });
  opened.defer(() => realtime.close());
  return { graphql, changes, realtime, live, shapes, socketMemory: memory };
}
