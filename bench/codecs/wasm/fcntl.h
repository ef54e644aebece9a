/* Named by the codecs' headers; nothing of it is used. */
