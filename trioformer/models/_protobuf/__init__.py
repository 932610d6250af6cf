"""Read and write objects in the protobuf format of Kubernetes, using a table of types.

- :mod:`._tables`: the table of types and their fields, made from the Go types of a Kubernetes release
- :mod:`._wire`: splits one level of a message into its fields
- :mod:`._heads`: the envelope of an object, and the fields that the library reads from every object
- :mod:`._fields`: decodes the values of a model's fields
- :mod:`._places`: names the object and the path of a damaged field
- :mod:`._plain`: converts messages to JSON values
- :mod:`._encode`: converts JSON values to messages
- :mod:`._transcode`: converts whole objects between JSON and protobuf
"""
