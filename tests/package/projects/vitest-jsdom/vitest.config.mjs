// As users have it, and with the package transformed as if it were theirs, which picks the browser's entry.
export default {
  test: {
    environment: "jsdom",
    include: ["*.test.mjs"],
    server: { deps: { inline: process.env.INLINE ? ["journal-fold"] : [] } }
  }
}
