import { electricCollectionOptions, isChangeMessage } from "@tanstack/electric-db-collection";
import { BasicIndex, createCollection } from "@tanstack/react-db";

/**
 * The rows that the user may read, kept in the browser. `send` writes; an optimistic row stays until the written one has arrived.
 * `headers` are those of the user.
 */
export function openCollections(serviceUrl, headers, send) {
  const open = (table, columns, operations = {}) => {
    const collection = createCollection(
      electricCollectionOptions({
        id: table,
        getKey: ({ id }) => id,
        autoIndex: "eager",
        defaultIndexType: BasicIndex,
        shapeOptions: {
          url: `${serviceUrl}/v1/shape`,
          params: { table, columns },
          headers,
          // Keys fit into a number.
          parser: { int8: Number },
        },
        ...mapValues(operations, (toOperation) => async ({ transaction }) => {
          const [mutation] = transaction.mutations;
          const { id } = await send(toOperation(mutation));
          await collection.utils.awaitMatch((message) => isChangeMessage(message) && message.value.id === id);
        }),
      }),
    );
    return collection;
  };

  const articles = open("articles", ["id", "title", "status", "author_id", "created_at"], {
    onInsert: ({ modified: { title } }) => insertion("/articles", { title, content: title, status: "PUBLISHED" }),
    onUpdate: ({ original: { id }, changes: { title } }) => ({
      method: "PATCH",
      path: `/articles?id=eq.${id}&select=id`,
      body: { title },
    }),
  });
  const comments = open("comments", ["id", "article_id", "content"], {
    onInsert: ({ modified: { article_id, content } }) => insertion("/comments", { article_id, content }),
  });
  return { articles, comments, users: open("users", ["id", "name"]) };
}

function insertion(path, body) {
  return { method: "POST", path: `${path}?select=id`, body };
}

function mapValues(object, change) {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, change(value)]));
}
